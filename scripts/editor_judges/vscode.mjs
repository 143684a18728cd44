/**
 * Uses the extension in VS Code in Chromium: keys are typed, and files are compared as bytes. `code_server.py` starts it.
 *
 * If PICTURE is set, only the picture of the documentation is made, with this name. PICTURES may name a directory for screenshots of
 * failed scenarios.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';

const { chromium } = createRequire(import.meta.url)(process.env.PLAYWRIGHT);
const { ROOT, SETTINGS, URL: ADDRESS } = process.env;
const QUIET = process.env.PLANWATCH_JUDGES_QUIET !== '';
const PATIENCE = 30_000;
const PLANS = '.pane:has(.pane-header[aria-label^="Plans"])';
let failed = 0;
let done = 0;

function that(name, passed, detail = '') {
  done += 1;
  failed += passed ? 0 : 1;
  if (!passed || !QUIET) {
    console.log(`${passed ? 'ok    ' : 'FAILED'} VS Code: ${name}${passed || detail === '' ? '' : `  ${detail}`}`);
  }
}

function same(name, found, expected) {
  that(name, found === expected, `found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}

const path = (name) => join(ROOT, 'plans', name);
const read = (name) => readFileSync(path(name), 'utf8');

function planwatch(...words) {
  return execFileSync('planwatch', words, { cwd: ROOT, encoding: 'utf8' });
}

/** Waits until something holds, and returns whether it did. */
async function until(isSo) {
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    if (await isSo()) {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

class Window {
  constructor(page) {
    this.page = page;
  }

  static async open(browser, size = { width: 1280, height: 800 }) {
    const page = await browser.newPage({ viewport: size });
    // The first start takes minutes on a busy machine.
    await page.goto(ADDRESS, { timeout: 4 * PATIENCE, waitUntil: 'commit' });
    await page.waitForSelector('.monaco-workbench .explorer-folders-view', { timeout: 4 * PATIENCE });
    const window = new Window(page);
    // Before its extensions run, the workbench drops keys.
    await window.shows('.statusbar-item[id*="planwatch.ui.status"]');
    // A view that an extension adds is closed until the person opens it.
    await page.locator(`${PLANS} .pane-header`).click();
    return window;
  }

  async shows(selector) {
    await this.page.waitForSelector(selector, { timeout: PATIENCE });
  }

  texts(selector) {
    return this.page.locator(selector).allInnerTexts();
  }

  keys(...names) {
    return names.reduce((before, it) => before.then(() => this.page.keyboard.press(it)), Promise.resolve());
  }

  type(text) {
    return this.page.keyboard.type(text);
  }

  /** Opens a file by its path, and goes to a place. Lines and columns count from 1. */
  async go(name, line, column) {
    const tab = this.page.locator(`.tab.active[data-resource-name="${name.split('/')[1]}"]`);
    // The box fills in the folder by itself, which may come between the keys.
    const isOpen = await until(async () => {
      await this.keys('Escape', 'Control+o');
      await this.shows('.quick-input-widget input');
      await this.page.waitForTimeout(500);
      await this.keys('Control+a');
      await this.type(path(name));
      await this.keys('Enter');
      return await tab.waitFor({ timeout: 5000 }).then(() => true, () => false);
    });
    if (!isOpen) {
      throw new Error(`${name} does not open`);
    }
    const place = async () => (await this.texts('.statusbar-item[id="status.editor.selection"]')).join('');
    const isThere = await until(async () => {
      // Focus on the first group of editors, wherever it was.
      await this.keys('Escape', 'Control+1', 'Control+g');
      await this.shows('.quick-input-widget input');
      await this.type(`${line}:${column}`);
      await this.keys('Enter');
      await this.page.waitForTimeout(500);
      return (await place()).includes(`Ln ${line}, Col ${column}`);
    });
    if (!isThere) {
      throw new Error(`the cursor is not at ${name}:${line}:${column}, but at ${await place()}`);
    }
  }

  async command(title) {
    await this.keys('F1');
    await this.shows('.quick-input-widget input');
    await this.type(title);
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first().click();
  }

  /** Chooses the code action at the cursor whose title has this text. */
  async act(title) {
    let titles = [];
    const isOffered = await until(async () => {
      await this.keys('Control+.');
      await this.page.waitForTimeout(700);
      titles = await this.texts('.action-widget .monaco-list-row');
      if (titles.some((it) => it.includes(title))) {
        return true;
      }
      await this.keys('Escape');
      return false;
    });
    that(`the action \`${title}\` is offered`, isOffered, `there are ${JSON.stringify(titles)}`);
    if (isOffered) {
      await this.page.locator('.action-widget .monaco-list-row', { hasText: title }).first().click();
    }
  }

  /** Closes all editors, and discards unsaved text. */
  async closeAll() {
    await this.keys('Escape', 'Escape', 'Control+k', 'Control+w');
    const drop = this.page.locator('.monaco-dialog-box .monaco-button', { hasText: "Don't Save" });
    await until(async () => (await this.page.locator('.tab').count()) === 0 || ((await drop.count()) > 0 && (await drop.click(), false)));
  }

  async save() {
    await this.keys('Control+s');
    await until(async () => (await this.page.locator('.tab.active.dirty').count()) === 0);
  }

  /** The lines of the editor that are on the screen. */
  async lines() {
    const all = await this.page.locator('.editor-instance .view-line').evaluateAll((found) =>
      found.map((it) => [Number.parseInt(it.style.top, 10), it.textContent.replaceAll('\u00a0', ' ')]));
    return all.sort((a, b) => a[0] - b[0]).map((it) => it[1]);
  }

  /** The rows of the tree of plans, as words. */
  async tree() {
    const rows = await this.texts(`${PLANS} .monaco-list-row`);
    return rows.map((it) => it.replaceAll(/\s+/g, ' ').trim());
  }

  /** Shows the steps of a plan, if they are not shown. */
  async expand(plan) {
    const row = this.page.locator(`${PLANS} .monaco-list-row`, { hasText: plan });
    if ((await row.getAttribute('aria-expanded')) !== 'true') {
      await row.locator('.monaco-tl-twistie').click();
    }
  }

  async statusBar() {
    return (await this.texts('.statusbar-item[id*="planwatch.ui.status"]')).join(' ').trim();
  }
}

async function becomes(name, file, expected) {
  await until(() => read(file) === expected);
  same(name, read(file), expected);
}

async function typo(it) {
  const original = read('shop/step-1.md');
  await it.go('shop/step-1.md', 2, 9);
  await it.keys(...'pending'.split('').map(() => 'Delete'));
  await it.type('pendng');
  that('a typo in a status is marked while it is typed', await until(async () => (await it.page.locator('.squiggly-error').count()) === 1));
  same('nothing is written meanwhile', read('shop/step-1.md'), original);
  await it.act('pending');
  that('the quick fix corrects it', await until(async () => (await it.lines())[1] === 'status: pending # first'), JSON.stringify(await it.lines()));
  that('the mark goes', await until(async () => (await it.page.locator('.squiggly-error').count()) === 0));
  await it.save();
  same('after the fix the file is what it was', read('shop/step-1.md'), original);
}

async function completion(it) {
  const original = read('shop/step-2.md');
  await it.go('shop/step-2.md', 3, 11);
  await it.keys('Delete', 'Control+Space');
  const rows = async () => (await it.texts('.suggest-widget .monaco-list-row')).map((row) => row.replaceAll(/\s+/g, ' '));
  const has = (title) => until(async () => (await rows()).some((row) => row.includes(title)));
  that('`depends` offers steps with their titles', await has('Schema'), JSON.stringify(await rows()));
  await it.type('billing:');
  that("a plan's id is followed by its steps", await has('billing:1'), JSON.stringify(await rows()));
  await it.page.locator('.suggest-widget .monaco-list-row', { hasText: 'billing:1' }).first().click();
  await it.save();
  await becomes('choosing one inserts its id', 'shop/step-2.md', original.replace('[1]', '[billing:1]'));
  writeFileSync(path('shop/step-2.md'), original);
  that('a file that another program writes is shown', await until(async () => (await it.lines())[2]?.startsWith('depends: [1')), JSON.stringify(await it.lines()));
}

async function hints(it) {
  await it.go('shop/step-2.md', 1, 1);
  that('a hint after a dependency has its status', await until(async () => /pending/.test((await it.lines())[2] ?? '')), JSON.stringify(await it.lines()));
  const lenses = () => it.texts('.contentWidgets .codelens-decoration');
  that('a lens says what the step waits for', await until(async () => (await lenses()).join().includes('waits for 1')), JSON.stringify(await lenses()));
}

async function tree(it) {
  that('the tree has the plans with their progress', await until(async () => (await it.tree()).some((row) => /Shop.*0\/3/.test(row))), JSON.stringify(await it.tree()));
  await it.expand('Shop');
  that('a plan has its steps', await until(async () => (await it.tree()).some((row) => /1 +Schema *ready/.test(row))), JSON.stringify(await it.tree()));
  that('a step says what it waits for', (await it.tree()).some((row) => /2 +Cart *waits for 1/.test(row)), JSON.stringify(await it.tree()));
  await it.page.locator(`${PLANS} .monaco-list-row`, { hasText: 'Schema' }).click();
  that('a click opens the file of a step', await until(async () => (await it.lines()).includes('# Schema')));
}

async function claims(it) {
  await it.expand('Shop');
  that('the status bar counts the ready steps', await until(async () => /ready/.test(await it.statusBar())), await it.statusBar());
  planwatch('claim', 'shop:1');
  that('a claim by another program is shown', await until(async () => /shop:1 Schema/.test(await it.statusBar())), await it.statusBar());
  that('and in the tree', await until(async () => (await it.tree()).some((row) => /Schema *in progress · person/.test(row))), JSON.stringify(await it.tree()));
  await it.go('shop/step-1.md', 1, 1);
  await it.command('planwatch: Complete Step');
  that('*Complete Step* completes the step in the editor', await until(() => read('shop/step-1.md').includes('status: completed')), read('shop/step-1.md'));
  that('and ends the claim', !read('shop/step-1.md').includes('claim: {'), read('shop/step-1.md'));
  that('the status bar counts again', await until(async () => /ready/.test(await it.statusBar())), await it.statusBar());
}

async function others(it) {
  await it.go('shop/step-3.md', 1, 1);
  renameSync(path('billing/step-1.md'), join(ROOT, 'away.md'));
  that('a deleted file is noticed without a keystroke', await until(async () => (await it.page.locator('.squiggly-error').count()) === 1));
  renameSync(join(ROOT, 'away.md'), path('billing/step-1.md'));
  that('a restored file is noticed, too', await until(async () => (await it.page.locator('.squiggly-error').count()) === 0));
}

async function rename(it) {
  const before = Object.fromEntries(['plan', 'step-2', 'step-3'].map((name) => [name, read(`shop/${name}.md`)]));
  await it.go('shop/step-3.md', 4, 5);
  // A box that is shown but has no focus yet leaves the keys to the text.
  const box = it.page.locator('.rename-box input:focus');
  const isAsked = await until(async () => {
    await it.keys('Escape', 'F2');
    return await box.waitFor({ timeout: 5000 }).then(() => true, () => false);
  });
  that('F2 asks for the new number', isAsked);
  await box.fill('2.5');
  await box.press('Enter');
  const refusal = it.page.locator('.monaco-editor-overlaymessage');
  const isSeen = await until(async () => (await refusal.count()) > 0 || read('shop/step-3.md').includes('2.5'));
  that('the rename is not refused', isSeen && (await refusal.count()) === 0, (await refusal.allInnerTexts()).join());
  await becomes('rename changes the step that names it', 'shop/step-3.md', before['step-3'].replace('- 2\n', '- 2.5\n'));
  await becomes('and the Steps list', 'shop/plan.md', before.plan.replaceAll('step-2', 'step-2.5'));
  await becomes('and the name of the file, with the same text', 'shop/step-2.5.md', before['step-2']);
}

async function lineEnds(it) {
  const original = read('billing/step-1.md');
  writeFileSync(path('billing/step-2.md'), read('billing/step-2.md'));
  for (const [file, id] of [['billing/step-1.md', 'billing:1'], ['billing/step-2.md', 'billing:2']]) {
    const before = read(file);
    planwatch('done', id);
    const expected = read(file);
    planwatch('undo');
    same(`${file} is what it was before`, read(file), before);
    await it.go(file, 2, 10);
    await it.act('Complete step');
    await until(async () => (await it.page.locator('.tab.active.dirty').count()) === 1);
    same(`${file} is not written by the action`, read(file), before);
    await it.save();
    await becomes(`${file} has the bytes of \`planwatch done\``, file, expected);
  }
  that('CRLF was there', original.includes('\r\n'));
}

async function missing(it) {
  const settings = JSON.parse(readFileSync(SETTINGS, 'utf8'));
  writeFileSync(SETTINGS, JSON.stringify({ ...settings, 'planwatch.path': '/nowhere/planwatch' }));
  const toasts = () => it.texts('.notification-toast');
  that('a program that is missing is reported with what to do',
    await until(async () => (await toasts()).join(' ').includes('`/nowhere/planwatch` was not found. Install planwatch, or set `planwatch.path`')), JSON.stringify(await toasts()));
}

/** The picture of docs/editors.md: a step with a problem, its hints and lens, and the tree. */
async function picture(it, file) {
  planwatch('claim', 'shop:1');
  await it.expand('Shop');
  await it.go('shop/step-3.md', 5, 14);
  await it.keys('Backspace');
  await it.type('7');
  await it.shows('.squiggly-error');
  await until(async () => (await it.lines()).some((line) => line.includes('missing')));
  await it.page.mouse.move(640, 420);
  await it.page.waitForTimeout(1500);
  await it.page.screenshot({ path: file });
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const it = await Window.open(browser, process.env.PICTURE ? { width: 1000, height: 560 } : undefined);
  if (process.env.PICTURE) {
    await picture(it, process.env.PICTURE);
  }
  const names = process.argv.slice(2);
  const all = [tree, typo, completion, hints, others, lineEnds, claims, rename, missing];
  for (const scenario of process.env.PICTURE ? [] : all.filter((one) => names.length === 0 || names.includes(one.name))) {
    const before = failed;
    try {
      await scenario(it);
    } catch (error) {
      that(scenario.name, false, `${error}; messages: ${JSON.stringify(await it.texts('.notification-toast'))}`);
    }
    if (failed > before && process.env.PICTURES) {
      await it.page.screenshot({ path: join(process.env.PICTURES, `${scenario.name}.png`) });
    }
    await it.closeAll();
  }
} finally {
  await browser.close();
}
console.log(`${failed === 0 ? 'ok    ' : 'FAILED'} VS Code: ${done} checks, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
