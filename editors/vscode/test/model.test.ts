import assert from 'node:assert/strict';
import { test } from 'node:test';

import { planLine, progress, state, statusLine, stepLine, verbs } from '../src/model.ts';
import type { Claimed, Plan, Status, Step } from '../src/protocol.ts';

const PLAN: Plan = {
  id: 'auth',
  title: 'Authentication',
  status: 'active',
  path: 'plans/auth/plan.md',
  steps_total: 5,
  steps_completed: 2,
  steps_skipped: 1,
  steps_failed: 0,
  steps_blocked: 0,
  steps_in_progress: 1,
  steps_ready: 1,
  problems: [],
};

const STEP: Step = {
  id: 'auth:2',
  plan: 'auth',
  number: '2',
  title: 'Migrations',
  status: 'pending',
  ready: true,
  waits_for: [],
  phase: null,
  assignee: null,
  claim: null,
  lapsed: false,
  attempts: [],
  tasks_done: 0,
  tasks_total: 0,
  path: 'plans/auth/step-2.md',
  problems: [],
};

const CLAIM = { id: 'h4f09a21', by: 'ann', at: '2026-11-21T09:14:03Z' };

test('progress counts completed and skipped steps', () => {
  const cases: [Partial<Plan>, string][] = [
    [{}, '███░░ 3/5'],
    [{ steps_completed: 0, steps_skipped: 0 }, '░░░░░ 0/5'],
    [{ steps_total: 100, steps_completed: 98 }, '████░ 99/100'],
    [{ steps_total: 3 }, '█████ 3/3'],
    [{ steps_total: 0 }, 'no steps'],
  ];
  for (const [change, expected] of cases) {
    assert.equal(progress({ ...PLAN, ...change }), expected);
  }
});

test('a plan is shown with its progress, and with a status that is not the usual one', () => {
  const line = planLine(PLAN);
  assert.deepEqual(line, {
    label: 'Authentication',
    description: '███░░ 3/5',
    tooltip: 'auth\n1 in progress · 1 ready',
    icon: 'project',
    color: 'charts.blue',
    context: 'plan',
  });
  assert.equal(planLine({ ...PLAN, status: 'draft' }).description, '███░░ 3/5  draft');
  assert.equal(planLine({ ...PLAN, problems: ['missing-plan-file'] }).icon, 'warning');
  assert.match(planLine({ ...PLAN, problems: ['missing-plan-file'] }).tooltip, /problems: missing-plan-file$/);
  assert.equal(planLine({ ...PLAN, steps_failed: 1 }).color, 'list.errorForeground');
});

test('a step offers the verbs that the engine accepts', () => {
  const cases: [Partial<Step>, string[]][] = [
    [{}, ['claim', 'start', 'done', 'fail']],
    [{ ready: false, waits_for: ['auth:1'] }, ['fail']],
    [{ status: 'in_progress', ready: false }, ['done', 'fail']],
    [{ status: 'in_progress', ready: false, claim: CLAIM }, ['release', 'done', 'fail']],
    [{ status: 'in_progress', claim: CLAIM, lapsed: true }, ['claim', 'release', 'done', 'fail']],
    [{ status: 'failed', ready: false }, []],
    [{ status: 'completed', ready: false }, []],
    [{ status: 'skipped', ready: false }, []],
    [{ status: 'pendng', ready: false }, []],
  ];
  for (const [change, expected] of cases) {
    const step = { ...STEP, ...change };
    assert.deepEqual(verbs(step), expected, JSON.stringify(change));
    assert.equal(stepLine(step).context, ['step', ...expected].join(' '));
  }
});

test('the state says who works on a step, and what it waits for', () => {
  const cases: [Partial<Step>, string][] = [
    [{}, 'ready'],
    [{ ready: false, waits_for: ['auth:1', 'billing:4', 'confirmation'] }, 'waits for 1, billing:4, confirmation'],
    [{ ready: false }, 'pending'],
    [{ status: 'in_progress', ready: false }, 'in progress'],
    [{ status: 'in_progress', claim: CLAIM }, 'in progress · ann'],
    [{ status: 'in_progress', claim: CLAIM, lapsed: true }, 'lapsed · ann'],
    [{ status: 'completed', ready: false }, 'completed'],
    [{ status: 'pendng', ready: false }, 'pendng'],
  ];
  for (const [change, expected] of cases) {
    assert.equal(state({ ...STEP, ...change }), expected);
  }
});

test('a step is shown with its number, and with all details in the tooltip', () => {
  const line = stepLine({
    ...STEP,
    number: '1.5',
    tasks_done: 1,
    tasks_total: 3,
    assignee: 'tom',
    phase: 'build',
    attempts: [{ outcome: 'failed' }, { outcome: 'no answer' }],
    problems: ['id-differs'],
  });
  assert.equal(line.label, '1.5  Migrations');
  const lines = ['auth:2', 'ready', 'tasks: 1 of 3', 'assignee: tom', 'phase: build', 'attempts: 2, last: no answer', 'problems: id-differs'];
  assert.deepEqual(line.tooltip.split('\n'), lines);
  assert.equal(line.icon, 'warning');
});

test('every status has an icon', () => {
  const icons = ['completed', 'skipped', 'failed', 'blocked', 'in_progress', 'pending', 'unheard of'].map(
    (status) => stepLine({ ...STEP, status, ready: false }).icon,
  );
  assert.deepEqual(icons, ['pass-filled', 'debug-step-over', 'error', 'stop', 'play-circle', 'debug-pause', 'debug-pause']);
});

function claimed(id: string, title: string, since: string): Claimed {
  return { id, title, since, uri: `file:///plans/${id}` };
}

function status(change: Partial<Status>): Status {
  return { plans_dir: '/plans', claimed: [], ready: 2, problems: 0, ...change };
}

test('the status bar shows the step that was claimed last, else how many are ready', () => {
  const one = claimed('auth:2', 'Migrations', '2026-11-21T09:00:00Z');
  const later = claimed('billing:4', 'Invoices', '2026-11-21T10:00:00Z');
  assert.equal(statusLine([]), undefined);
  assert.equal(statusLine([status({})])?.text, '$(checklist) 2 ready');
  assert.equal(statusLine([status({}), status({ ready: 3 })])?.text, '$(checklist) 5 ready');
  assert.equal(statusLine([status({ claimed: [one] })])?.text, '$(lock) auth:2 Migrations');
  const two = statusLine([status({ claimed: [one] }), status({ claimed: [later], problems: 1 })]);
  assert.equal(two?.text, '$(lock) billing:4 Invoices +1');
  assert.deepEqual(two.claimed, [later, one]);
  assert.deepEqual(two.tooltip.split('\n'), [
    'claimed: billing:4 Invoices',
    'claimed: auth:2 Migrations',
    '4 ready',
    '1 problem',
    'Click to open the claimed step',
  ]);
});

test('a title cannot bring icons into the status bar, and a long one is cut between characters', () => {
  const text = (title: string) => statusLine([status({ claimed: [claimed('a:1', title, '')] })])?.text;
  assert.equal(text('Pay $(bug) now'), '$(lock) a:1 Pay \\$(bug) now');
  assert.equal(text('👩‍👩‍👧'.repeat(41)), `$(lock) a:1 ${'👩‍👩‍👧'.repeat(39)}…`);
  assert.equal(text('x'.repeat(40)), `$(lock) a:1 ${'x'.repeat(40)}`);
});
