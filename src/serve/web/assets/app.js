// Keeps pages current, and lets cards be dragged and keys be pressed. Without it, everything works with forms.
// The same file is the shared worker of all tabs: browsers open at most six connections to a host, so the tabs share one
// stream, and tabs with the same address share one answer.

// Sends a request and returns the answer, or `{}` if the server does not answer.
const send = async (path, body) => {
  try {
    const it = await fetch(path, { method: body ? 'POST' : 'GET', body, headers: { 'X-Planwatch-Part': '1' } });
    return { status: it.status, ok: it.ok, text: await it.text() };
  } catch { return {}; }
};

// The stream, in a worker or in the tab that leads.
function follow(tell) {
  let source, timer, wait = 1000, is_out = false;
  const open = () => {
    clearTimeout(timer);
    source?.close();
    source = new EventSource('/events');
    source.onopen = () => { wait = 1000; is_out = false; tell({ kind: 'again' }); };
    for (const kind of ['ready', 'reset']) source.addEventListener(kind, () => tell({ kind: 'again' }));
    for (const kind of ['changed', 'event'])
      source.addEventListener(kind, (it) => tell({ kind: 'changed', plan: JSON.parse(it.data).plan }));
    source.onerror = async () => {
      tell({ kind: is_out ? 'out' : 'lost' });
      if (source.readyState !== EventSource.CLOSED) return;
      // Any answer but 200 ends an EventSource for good: find out which it was, then begin again.
      const probe = new AbortController();
      const answer = await fetch('/events', { signal: probe.signal }).catch(() => null);
      is_out = answer?.status === 401;
      probe.abort();
      tell({ kind: is_out ? 'out' : 'lost' });
      wait = Math.min(wait * 2, 15000);
      timer = setTimeout(open, wait);
    };
  };
  open();
  return { open };
}

if (typeof SharedWorkerGlobalScope !== 'undefined') {
  // An answer is good until the next event, or until a tab has changed something or was opened, perhaps in a new session.
  const ports = new Set(), answers = new Map();
  let stream, last = { kind: 'again' };
  self.onconnect = (it) => {
    const port = it.ports[0];
    ports.add(port);
    answers.clear();
    port.onmessage = async ({ data: { kind, path } }) => {
      if (kind === 'bye') ports.delete(port);
      if (kind === 'retry') stream.open();
      if (kind === 'acted') answers.clear();
      if (!path) return;
      if (!answers.has(path)) answers.set(path, send(path));
      port.postMessage({ kind: 'page', ...await answers.get(path) });
    };
    port.postMessage(last);
    stream ??= follow((what) => {
      answers.clear();
      if (what.kind !== 'changed') last = what;
      ports.forEach((port) => port.postMessage(what));
    });
  };
} else {
  page();
}

function page() {
  const $ = (what, of = document) => of.querySelector(what);
  const all = (what, of = document) => [...of.querySelectorAll(what)];
  const active = () => document.activeElement, on = document.addEventListener.bind(document);
  const inside = (event, what) => event.target.closest?.(what);
  const focus_on = (it) => it?.focus({ preventScroll: true });
  const parse = (text) => new DOMParser().parseFromString(text, 'text/html');
  const SILENT = 'The server does not answer';
  const main = $('#main'), live = $('#live'), notice = $('#notice');
  document.documentElement.classList.add('has-script');
  // Removes the notice from the address, so that it is not shown again when the page is reloaded or its address is
  // shared.
  const address = new URL(location.href);
  if (address.searchParams.has('notice')) { address.searchParams.delete('notice'); history.replaceState(null, '', address); }

  // ---- Replacing what changed, without losing focus, scroll or typed text.
  // Reads attributes, not properties: `form.id` is the form's field of the name `id`, if it has one.
  const key = (it) => it.nodeType === 1 ? it.getAttribute('id') || it.dataset.key || (it.getAttribute('name') && it.type !== 'hidden' ? `${it.getAttribute('name')}=${it.type === 'submit' ? it.value : ''}` : '') : '';
  // Boxes whose tick is being sent.
  const busy = new Set();
  const is_same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);
  const is_kept = (it) => it.dataset?.keep !== undefined && (it.contains(active()) || it.dataset.full !== undefined || all('input,textarea,select', it).some(is_typed));
  const is_typed = (it) => it.type === 'hidden' ? false : it.type === 'checkbox' ? it.checked !== it.defaultChecked
    : it.nodeName === 'SELECT' ? [...it.options].some((o, n) => o.selected !== (o.defaultSelected || (n === 0 && !all('[selected]', it).length))) : it.value !== it.defaultValue;

  function morph(old, now) {
    if (old.isEqualNode(now)) return;
    if (old.nodeType !== 1) { if (old.nodeValue !== now.nodeValue) old.nodeValue = now.nodeValue; return; }
    if (is_kept(old)) {
      shown = '';
      // This part stays as it is; with the new token of the page its form can still be sent.
      const token = $('input[name=page]', now);
      if (token) all('input[name=page]', old).forEach((it) => { it.value = token.value; it.defaultValue = token.value; });
      const etag = $('input[name=etag]', now), changed = $('.file-changed', old);
      if (changed) changed.hidden = etag.value === $('input[name=etag]', old).value;
      return;
    }
    const is_box = !!old.dataset.line;
    const is_field = !is_box && ['INPUT', 'TEXTAREA'].includes(old.nodeName);
    if (busy.has(old) || (is_field && (is_typed(old) || old === active()))) { shown = ''; return; }
    for (const { name } of [...old.attributes])
      if (!now.hasAttribute(name) && !['open', 'disabled', 'style'].includes(name)) old.removeAttribute(name);
    for (const { name, value } of now.attributes)
      if (old.getAttribute(name) !== value && !(name === 'disabled' && is_box)) old.setAttribute(name, value);
    if (old.nodeName === 'INPUT') {
      old.checked = now.hasAttribute('checked');
      if (old.type === 'hidden') old.value = now.value;
    }
    children(old, now);
    if (old.nodeName === 'TEXTAREA') old.value = old.defaultValue;
  }

  function children(old, now) {
    const known = new Map();
    for (const it of old.children) if (key(it)) known.set(key(it), it);
    let at = old.firstChild;
    for (const wanted of [...now.childNodes]) {
      let found = key(wanted) ? known.get(key(wanted)) : at;
      if (found && !(found.parentNode === old && is_same(found, wanted))) found = undefined;
      if (found && !key(wanted) && key(found)) found = undefined;
      if (!found) { old.insertBefore(wanted, at); continue; }
      if (found === at) at = at.nextSibling;
      else place(old, found, at);
      morph(found, wanted);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }

  // In browsers without `moveBefore`, moving a focused element takes its focus away.
  function place(parent, it, before) {
    const focus = it.contains(active()) ? active() : null;
    if (parent.moveBefore) parent.moveBefore(it, before); else parent.insertBefore(it, before);
    if (focus && active() !== focus) focus_on(focus);
  }

  // ---- One refresh at a time, and one more if something changed meanwhile. `shown` is empty if a part was left as it is.
  let is_still = 'still' in document.body.dataset;
  let is_busy = false, is_wanted = false, dragged = null, is_lost, shown, load = send;
  async function refresh() {
    if (is_still) return;
    if (is_busy || dragged || document.hidden) { is_wanted = true; return; }
    is_busy = true; is_wanted = false;
    const answer = await load(location.pathname + location.search);
    is_busy = false;
    if (dragged) is_wanted = true; else show(answer);
    if (is_wanted && !dragged && !document.hidden) refresh();
  }
  function show({ status, ok, text }) {
    if (!status) return say(`${SILENT}. This page is updated again when it does.`, true);
    if (status === 401) return signed_out();
    if (status === 404) return say('This is no longer there.', true);
    if (!ok) return;
    if (is_lost) say('');
    const fresh = text !== shown && $('#main', parse(text));
    if (!fresh) return;
    shown = text;
    const gone = active(), row = gone?.closest('[data-key]')?.dataset.key;
    children(main, fresh);
    if (gone && !gone.isConnected) focus_on((gone.id && document.getElementById(gone.id)) || titled(row) || main);
    settle();
  }
  const titled = (key) => key && $(`[data-key="${CSS.escape(key)}"] a.title`);
  // After an action, moves the focus to the changed step, else to the notice, unless another element has the focus.
  async function land(step) {
    await refresh();
    const at = active();
    if (at && at !== document.body && at !== main) return;
    const it = titled(`s-${step}`);
    it?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    focus_on(it || $('.notice') || main);
  }
  function say(text, lost) {
    if (live.textContent !== text) live.textContent = text;
    is_lost = lost;
  }
  function signed_out() {
    say('Signed out: run “planwatch browser” again. What you typed stays here.', true);
  }
  on('visibilitychange', () => { if (!document.hidden && is_wanted) refresh(); });

  // ---- The stream: by the shared worker, else by the tab that holds the lock.
  function heard(what) {
    if (what.kind === 'out') return signed_out();
    if (what.kind === 'lost') return say('The connection is lost. Trying again…', true);
    const plan = document.body.dataset.plan;
    if (what.kind === 'changed' && plan && what.plan && what.plan !== plan && !$('.waits, .why')) return;
    refresh();
  }
  let retry = () => {}, acted = retry, got;
  if (!is_still) {
    if (window.SharedWorker) {
      const worker = new SharedWorker(import.meta.url, { type: 'module', name: 'planwatch' });
      const ask = (kind, path) => worker.port.postMessage({ kind, path });
      worker.port.onmessage = ({ data }) => data.kind === 'page' ? got(data) : heard(data);
      // A worker that has crashed does not answer.
      load = (path) => new Promise((done) => { got = done; ask('load', path); setTimeout(done, 9e3, {}); });
      retry = () => ask('retry');
      acted = () => ask('acted');
      addEventListener('pagehide', () => ask('bye'));
      addEventListener('pageshow', (it) => { if (it.persisted) location.reload(); });
    } else {
      const channel = new BroadcastChannel('planwatch');
      channel.onmessage = (it) => heard(it.data);
      const lead = () => new Promise(() => {
        const stream = follow((what) => { channel.postMessage(what); heard(what); });
        retry = stream.open;
      });
      navigator.locks?.request('planwatch', lead) ?? lead();
    }
    addEventListener('focus', () => is_lost && retry());
  }

  // ---- Forms: sent by fetch, so that the page stays as it is. The second click of a double click must not press another
  // button that has appeared at the same place.
  let last = {};
  on('click', (event) => {
    const { timeStamp: at, clientX: x, clientY: y } = event, button = inside(event, 'button')?.value;
    const is_same_place = event.detail && at - last.at < 700 && Math.hypot(x - last.x, y - last.y) < 5;
    if (is_same_place && last.button && button && button !== last.button) event.preventDefault();
    last = { at, x, y, button };
  }, true);
  on('submit', async (event) => {
    const form = event.target;
    if (form.method !== 'post' || form.getAttribute('action') !== '/do') return;
    if (!notice) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    if (form.dataset.full !== undefined) return save(body);
    const had_focus = form.contains(active()) || active() === document.body;
    if (await act(body)) {
      form.reset();
      all('.field-said').forEach((it) => it.replaceChildren());
      // This form forced an action that was refused. The typed text is still in the form that was sent first.
      if (form.dataset.again !== undefined) refused?.reset();
      form.closest('details.menu, details.more')?.removeAttribute('open');
      if (had_focus) focus_on(form.isConnected ? form.closest('details')?.querySelector('summary') ?? main : main);
      land(body.get('id'));
    } else if (!notice.contains(form)) {
      refused = form;
      // The refusal of a single field is shown next to the field.
      const place = $('.field-said', form.parentNode), said = place && $('.refused > div', notice);
      if (said) { place.replaceChildren(said); tell(); focus_on($('[name=value]', form)); }
    }
  });
  let refused;
  // Sends a request and returns the page of the answer. Without an answer or a session, shows why and returns
  // nothing.
  async function request(path, body, silent) {
    const { status, ok, text } = await send(path, body);
    acted();
    if (!status) say(SILENT + silent, true);
    else if (status === 401) signed_out();
    else return { status, ok, now: parse(text) };
  }
  async function act(body) {
    const answer = await request('/do', body, '; nothing was changed.');
    if (!answer) return false;
    tell($('.notice', answer.now), answer.ok);
    if (!answer.ok) focus_on($('.notice'));
    if ([409, 412].includes(answer.status)) refresh();
    return answer.ok;
  }
  // The notice of a success disappears after a while, unless it has the pointer or the focus. `u` can still undo it
  // later.
  function tell(shown, leaves) {
    clearTimeout(tell.timer);
    notice.replaceChildren(...(shown ? [shown] : []));
    const leave = () => { if ($('#notice:hover, #notice:focus-within')) tell.timer = setTimeout(leave, 5000); else notice.replaceChildren(); };
    if (leaves) tell.timer = setTimeout(leave, 20000);
  }
  async function undo() {
    const button = $('form[data-act=undo] button', notice);
    if (button) return button.click();
    const answer = await request('/undo?last=1', undefined, '.');
    if (!answer) return;
    tell($('.notice', answer.now));
    focus_on($('form button', notice) || $('.notice'));
  }
  // Sends the text of the editor. If the file has changed, both versions are shown, and stay until the next attempt
  // to save. The page is left only after the text is saved.
  async function save(body) {
    const answer = await request('/do', body, '; your text is not saved yet.');
    if (!answer) return;
    const fresh = $('#main', answer.now), said = $('.notice', answer.now);
    if (answer.ok) { page.sending = true; location.assign(said?.dataset.to ?? body.get('back')); }
    else if (fresh) { is_still = true; main.replaceChildren(...fresh.childNodes); scrollTo(0, 0); }
    else tell(said);
  }
  function fields(step, act_, more) {
    const token = $('input[name=page]')?.value ?? $('[data-page]')?.dataset.page ?? '';
    return new URLSearchParams({ page: token, back: location.pathname + location.search, id: step, do: act_, ...more });
  }

  // Applies a filter as soon as it is chosen, and sends a box that is ticked.
  on('change', (event) => {
    const form = inside(event, 'form[data-filter]');
    if (form && event.target.nodeName === 'SELECT') form.requestSubmit();
    const text = inside(event, '[data-tick]');
    if (text && event.target.dataset.line) tick(text, event.target);
  });
  async function tick(text, box) {
    if (busy.has(box)) { box.checked = !box.checked; return; }
    const more = { line: box.dataset.line, hash: box.dataset.hash, ticked: box.checked };
    busy.add(box);
    if (!await act(fields(text.dataset.tick, 'tick', more))) box.checked = !box.checked;
    busy.delete(box);
    refresh();
  }
  function settle() {
    all('[data-tick] input[data-line]').forEach((it) => { it.disabled = false; });
    ages();
  }

  // ---- Ages of times, once a minute while the page is seen.
  function ages() {
    for (const it of all('time[datetime]')) {
      const s = (Date.now() - new Date(it.dateTime)) / 1000 | 0;
      const of = (size, word) => `${s / size | 0} ${word} ago`;
      const text = s < 60 ? 'just now' : s < 3600 ? of(60, 'min') : s < 86400 ? of(3600, 'h') : s < 172800 ? 'yesterday'
        : s < 5184000 ? of(86400, 'days') : s < 63072000 ? of(2592000, 'months') : of(31536000, 'years');
      if (s >= 0 && it.textContent !== text) it.textContent = text;
    }
  }
  setInterval(() => { if (!document.hidden) ages(); }, 60000);

  // ---- Dragging a card into another column.
  function clear() { all('.over').forEach((it) => it.classList.remove('over')); }
  function end() {
    if (!dragged) return;
    dragged.classList.remove('dragged');
    dragged = null;
    clearTimeout(end.timer);
    clear();
    if (is_wanted) refresh();
  }
  on('dragstart', (event) => {
    const card = inside(event, '[draggable=true]');
    if (!card) return;
    dragged = card;
    card.classList.add('dragged');
    event.dataTransfer.effectAllowed = 'move';
    event.dataTransfer.setData('text/plain', card.dataset.step);
    // If the card is removed during the drag, there is no `dragend` event.
    end.timer = setTimeout(end, 30000);
  });
  on('dragover', (event) => {
    const column = dragged && inside(event, '[data-drop]');
    if (!column) return;
    event.preventDefault();
    clear();
    column.classList.add('over');
  });
  on('drop', async (event) => {
    const column = dragged && inside(event, '[data-drop]');
    if (!column) return;
    event.preventDefault();
    const { step } = dragged.dataset, from = dragged.closest('[data-drop]');
    end();
    if (column === from) return;
    // A card of work in progress that goes back is released, not reopened.
    const verb = column.dataset.drop === 'reopen' && from?.id === 'column-working' ? 'release' : column.dataset.drop;
    await act(fields(step, verb));
    land(step);
  });
  on('dragend', end);

  // ---- Keys and menus.
  const items = (menu) => all('[role=menuitem]', menu);
  // Places an open menu over the page where it has room, because a column would cut it off.
  function place_menus() {
    for (const menu of all('details.move[open]')) {
      const { style } = $('.sheet', menu), { top, bottom, right } = $('summary', menu).getBoundingClientRect();
      style.maxHeight = '';
      const { offsetHeight: height, offsetWidth: width } = $('.sheet', menu), below = innerHeight - bottom - 8, above = top - 8;
      const is_below = height <= below || below >= above, most = Math.max(is_below ? below : above, 80);
      style.maxHeight = `${most}px`;
      style.top = `${is_below ? bottom + 4 : Math.max(4, top - 4 - Math.min(height, most))}px`;
      style.left = `${Math.max(4, Math.min(right, innerWidth - 4) - width)}px`;
    }
  }
  on('toggle', place_menus, true);
  on('scroll', (event) => { if (!inside(event, '.sheet')) place_menus(); }, true);
  addEventListener('resize', place_menus);
  function close(menu) { menu.removeAttribute('open'); $('summary', menu).focus(); }
  // While a menu is open, keys belong to it.
  function in_menu(event, menu) {
    const list = items(menu), at = list.indexOf(active()), end = list.length - 1;
    if (event.key === 'Tab') return list.length && menu.contains(active()) && close(menu);
    const by = list.findIndex((it, nth) => nth > at && it.textContent.trim().toLowerCase().startsWith(event.key));
    const to = { ArrowDown: at < end ? at + 1 : 0, ArrowUp: at > 0 ? at - 1 : end, Home: 0, End: end }[event.key] ?? by;
    if (!list[to]) return;
    event.preventDefault();
    list[to].focus();
  }
  on('click', (event) => {
    all('details.menu[open]').forEach((it) => { if (!it.contains(event.target)) it.removeAttribute('open'); });
    const menu = inside(event, 'details.menu > summary')?.parentNode;
    // If a key opens the menu, the first item gets the focus.
    if (menu && !menu.open && !event.detail) setTimeout(() => items(menu)[0]?.focus());
    if (inside(event, '[data-keys]')) $('#keys').showModal();
    if (inside(event, '[data-close]')) { const had = notice.contains(active()); tell(); if (had) focus_on(main); }
    const path = inside(event, '[data-copy]')?.dataset.copy;
    if (path) navigator.clipboard.writeText(path).then(() => say(`Copied: ${path}`), () => say(path));
    if (path) setTimeout(() => say(''), 4000);
  });
  const ROW = '.card, .rows > li, .plan-rows > li';
  const rows = (of) => all(ROW, of).filter((it) => $('a.title', it));
  const here = () => active()?.closest?.(ROW);
  const select = (it) => it && $('a.title', it).focus();
  function step_to(by) {
    const list = rows(), at = list.indexOf(here());
    select(list[at < 0 && by < 0 ? list.length - 1 : at + by]);
  }
  // Selects the row at this position in the column of the selected card or, without such a column, in the page.
  const end_of = (nth) => select(rows(here()?.closest('.column') ?? document).at(nth));
  function sideways(by) {
    const column = here()?.closest('.column'), list = all('.column').filter((it) => rows(it).length);
    if (!column) return select(rows($('#column-ready:has(a)') ?? main)[0]);
    const next = list[list.indexOf(column) + by];
    if (next) select(rows(next)[rows(column).indexOf(here())] ?? rows(next).at(-1));
  }
  // The step that keys are about: the selected one, else the one of the page.
  const link = () => here() && $('a.title', here()).getAttribute('href');
  function subject() {
    const to = link() ?? '', id = here() ? to.startsWith('/step/') && decodeURIComponent(to.slice(6)) : $('#update [name=id]')?.value;
    if (!id) say('Select a step first.');
    return id;
  }
  async function verb(word, more) {
    const id = subject(), button = !here() && !more && $(`#update button[value=${word}]`);
    // Presses the button of the page's form, so that the text typed there is sent, too.
    if (button) button.click();
    else if (id && await act(fields(id, word, more))) { $('#update')?.reset(); land(id); }
  }
  function because(word) {
    const box = $('#reason'), id = subject();
    if (!box || !id) return;
    $('h2', box).textContent = `${word} ${id}`;
    const input = $('input', box);
    input.value = here() ? '' : $('#message').value;
    box.returnValue = '';
    box.onclose = () => { if (box.returnValue) verb(word, { message: input.value }); };
    box.showModal();
  }
  // Forms are only on the page of their step. For a selected row, that page is loaded.
  const reveal = (it) => { it.open = true; $('textarea, input:not([type=hidden])', it).focus(); };
  function form(name) {
    const it = !here() && document.getElementById(name);
    if (it) reveal(it);
    else if (here() && subject()) location.assign(`${link()}#${name}`);
    else if (subject()) say('There is nothing to confirm.');
  }
  const asked = document.getElementById(location.hash.slice(1));
  // Browsers take the focus away when they scroll to the place.
  if (asked?.matches('details, #gate')) addEventListener('load', () => setTimeout(reveal, 0, asked));
  // A wide drawing is scrolled to the first node that is not closed.
  for (const box of all('.graph-scroll')) {
    const node = $('.node:not(.is-completed, .is-skipped)', box);
    if (node) box.scrollLeft = node.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 3;
  }
  const KEYS = {
    '/': () => $('.find input').focus(),
    '?': () => $('#keys')?.showModal(),
    j: () => step_to(1), k: () => step_to(-1),
    m: () => { const menu = here() && $('details.move', here()); if (menu) { menu.open = true; items(menu)[0]?.focus(); } },
    h: () => sideways(-1), l: () => sideways(1),
    g: () => end_of(0), G: () => end_of(-1),
    c: () => verb('claim'), s: () => verb('start'), d: () => verb('done'), x: () => verb('skip'), r: () => verb('reopen'),
    f: () => because('fail'), b: () => because('block'),
    n: () => form('note-form'), a: () => form('attempt-form'), '+': () => form('add-form'), y: () => form('gate'),
    e: () => { if (!here()) $('#edit')?.click(); else if (subject()) location.assign(`${link()}/edit`); },
    u: undo,
  };
  on('keydown', (event) => {
    const menu = active()?.closest?.('details.menu[open]') ?? $('details.menu[open]');
    if (event.key === 'Escape') {
      end();
      if (menu) close(menu);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (inside(event, 'input, textarea, select, dialog')) return;
    if (menu) return in_menu(event, menu);
    const closed = event.key.startsWith('Arrow') && inside(event, 'details.menu > summary')?.parentNode;
    if (closed && items(closed).length) {
      closed.open = true;
      return in_menu(event, closed);
    }
    const does = KEYS[{ ArrowDown: 'j', ArrowUp: 'k', ArrowLeft: 'h', ArrowRight: 'l' }[event.key] ?? event.key];
    if (!does || (event.key.startsWith('Arrow') && !here())) return;
    event.preventDefault();
    does();
  });

  // The browser asks before it closes the tab if the editor has unsaved text.
  addEventListener('beforeunload', (event) => {
    const editor = $('#editor textarea');
    if (editor && editor.value !== editor.defaultValue && !page.sending) event.preventDefault();
  });
  settle();
}
