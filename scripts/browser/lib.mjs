// Shared by the scripts about the pages: plans in a temporary directory, a daemon, and a browser that is signed in.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(`${process.env.JUDGES}/`);
export const { chromium } = require('playwright-core');
export const AXE = require('axe-core').source;

/** Plans in a temporary directory; `fill` writes them. */
export function plans(fill) {
  const root = mkdtempSync(join(tmpdir(), 'planwatch-browser-'));
  mkdirSync(join(root, 'plans'));
  fill(join(root, 'plans'));
  const env = { ...process.env, HOME: root, PLANWATCH_BY: 'ann', XDG_STATE_HOME: join(root, 'state'), XDG_CACHE_HOME: join(root, 'cache') };
  for (const name of ['PLANS_DIR', 'PLANWATCH_PLAN', 'PLANWATCH_STEP', 'PLANWATCH_CLAIM']) delete env[name];
  const planwatch = (...words) => execFileSync(process.env.PLANWATCH_BIN, words, { cwd: root, env, encoding: 'utf8' });
  planwatch('watch', '--detach', '--http', '0', '-q');
  return {
    root,
    planwatch,
    at: (...path) => join(root, 'plans', ...path),
    signIn: () => planwatch('browser', '--print', '-q').trim(),
    pid: () => JSON.parse(planwatch('watch', '--detach', '--json')).pid,
    restart(address) {
      planwatch('watch', '--stop', '-q');
      planwatch('watch', '--detach', '--http', address, '-q');
    },
    stop() {
      try { planwatch('watch', '--stop', '-q'); } finally { rmSync(root, { recursive: true, force: true, maxRetries: 5 }); }
    },
  };
}

export const example = (to) => cpSync('plans-example', to, { recursive: true });

/** `n` plans of ten steps. */
export function many(to, n) {
  for (let plan = 0; plan < n; plan++) {
    const name = `plan-${String(plan).padStart(5, '0')}`;
    mkdirSync(join(to, name));
    writeFileSync(join(to, name, 'plan.md'), `---\nstatus: active\n---\n# Plan ${plan}\n\nText of plan ${plan}.\n`);
    for (let step = 1; step <= 10; step++) {
      const status = step < 4 ? 'completed' : 'pending';
      const waits = step > 1 ? `depends: [${step - 1}]\n` : '';
      writeFileSync(join(to, name, `step-${step}.md`), `---\nstatus: ${status}\n${waits}---\n# Step ${step} of ${plan}\n\n- [ ] a task\n`);
    }
  }
}

/** A plan of `n` steps. */
export function long(to, name, n) {
  mkdirSync(join(to, name));
  writeFileSync(join(to, name, 'plan.md'), `---\nstatus: active\n---\n# A plan of ${n} steps\n`);
  for (let step = 1; step <= n; step++) {
    const waits = step > 3 && step % 2 ? `depends: [${step - 3}]\n` : '';
    const status = step < n / 3 ? 'completed' : 'pending';
    writeFileSync(join(to, name, `step-${step}.md`), `---\nstatus: ${status}\n${waits}---\n# Step ${step}: a piece of work\n\n- [ ] a task\n`);
  }
}

/** A plan of `n` steps, each after the one before it, so that its graph is very wide. */
export function chain(to, name, n) {
  mkdirSync(join(to, name));
  writeFileSync(join(to, name, 'plan.md'), `---\nstatus: active\n---\n# A chain of ${n} steps\n`);
  for (let step = 1; step <= n; step++) {
    const waits = step > 1 ? `depends: [${step - 1}]\n` : '';
    writeFileSync(join(to, name, `step-${step}.md`), `---\nstatus: ${step < n / 3 ? 'completed' : 'pending'}\n${waits}---\n# Link ${step}\n`);
  }
}

/** Saves as editors do: a new file in place of the old one. */
export function save(path, text) {
  writeFileSync(`${path}.tmp~`, text);
  renameSync(`${path}.tmp~`, path);
}

export const browser = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: ['--no-sandbox', '--disable-dev-shm-usage'] });

/** A context that is signed in; `faults` collects errors on the console and requests to other hosts. */
export async function context(browser, it, faults, options = {}) {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const url = it.signIn();
  const { origin } = new URL(url);
  context.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('blob:')) faults.push(`fetched ${request.url()}`);
  });
  context.on('page', (page) => {
    page.on('console', (said) => { if (said.type() === 'error') faults.push(`${page.url()}: ${said.text()}`); });
    page.on('pageerror', (error) => faults.push(`${page.url()}: ${error.message}`));
    page.on('dialog', (dialog) => { faults.push(`${page.url()}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
  });
  const page = await context.newPage();
  await page.goto(url);
  return { context, page, origin };
}

export const percentile = (of, p) => [...of].sort((a, b) => a - b)[Math.min(of.length - 1, Math.floor(of.length * p))];
