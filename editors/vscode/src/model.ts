/** How plans and steps are shown: words, icons, and what can be done with them. */

import type { Claimed, Plan, Status, Step } from './protocol.ts';

/** What a line of the tree shows. `context` is what `when` clauses of menus read. */
export interface Line {
  label: string;
  description: string;
  tooltip: string;
  icon: string;
  /** The id of a colour of the editor's theme. */
  color?: string;
  context: string;
}

const CLOSED = new Set(['completed', 'skipped']);
const BAR = 5;

/** `███░░ 3/5`, as on the command line. Skipped steps count as closed. */
export function progress(plan: Plan): string {
  if (plan.steps_total === 0) {
    return 'no steps';
  }
  const closed = plan.steps_completed + plan.steps_skipped;
  const filled = Math.floor((closed * BAR) / plan.steps_total);
  return `${'█'.repeat(filled)}${'░'.repeat(BAR - filled)} ${closed}/${plan.steps_total}`;
}

function counted(n: number, what: string): string[] {
  return n > 0 ? [`${n} ${what}`] : [];
}

export function planLine(plan: Plan): Line {
  const counts = [
    ...counted(plan.steps_in_progress, 'in progress'),
    ...counted(plan.steps_ready, 'ready'),
    ...counted(plan.steps_failed, 'failed'),
    ...counted(plan.steps_blocked, 'blocked'),
  ];
  const status = plan.status === 'active' ? [] : [plan.status];
  const problems = plan.problems.length > 0 ? [`problems: ${plan.problems.join(', ')}`] : [];
  return {
    label: plan.title,
    description: [progress(plan), ...status].join('  '),
    tooltip: [plan.id, counts.join(' · '), ...problems].filter((it) => it !== '').join('\n'),
    ...planIcon(plan),
    context: 'plan',
  };
}

function planIcon(plan: Plan): Pick<Line, 'icon' | 'color'> {
  if (plan.problems.length > 0) {
    return { icon: 'warning', color: 'list.warningForeground' };
  }
  if (plan.steps_failed > 0 || plan.steps_blocked > 0) {
    return { icon: 'project', color: 'list.errorForeground' };
  }
  return plan.steps_in_progress > 0 ? { icon: 'project', color: 'charts.blue' } : { icon: 'project' };
}

/** The verbs that are offered for a step as it is now. The engine accepts them without `--force`. */
export function verbs(step: Step): string[] {
  if (CLOSED.has(step.status)) {
    return [];
  }
  const isRunning = step.status === 'in_progress';
  const possible: [string, boolean][] = [
    ['claim', step.ready],
    ['release', step.claim !== null],
    ['start', step.ready && !isRunning],
    ['done', step.ready || isRunning],
    ['fail', step.status === 'pending' || isRunning],
  ];
  return possible.filter(([, is]) => is).map(([verb]) => verb);
}

export function stepLine(step: Step): Line {
  const lines = [
    step.id,
    state(step),
    ...(step.tasks_total > 0 ? [`tasks: ${step.tasks_done} of ${step.tasks_total}`] : []),
    ...(step.assignee === null ? [] : [`assignee: ${step.assignee}`]),
    ...(step.phase === null ? [] : [`phase: ${step.phase}`]),
    ...lastOutcome(step),
    ...(step.problems.length > 0 ? [`problems: ${step.problems.join(', ')}`] : []),
  ];
  return {
    label: `${step.number}  ${step.title}`,
    description: state(step),
    tooltip: lines.join('\n'),
    ...stepIcon(step),
    context: ['step', ...verbs(step)].join(' '),
  };
}

function lastOutcome(step: Step): string[] {
  const last = step.attempts.at(-1);
  return last === undefined ? [] : [`attempts: ${step.attempts.length}, last: ${last.outcome}`];
}

/** One word about a step, with who works on it or what it waits for. */
export function state(step: Step): string {
  if (step.status === 'in_progress' && step.claim !== null) {
    return `${step.lapsed ? 'lapsed' : 'in progress'} · ${step.claim.by}`;
  }
  if (step.status === 'pending') {
    return step.ready ? 'ready' : waiting(step);
  }
  return step.status.replaceAll('_', ' ');
}

function waiting(step: Step): string {
  const prefix = `${step.plan}:`;
  const names = step.waits_for.map((it) => (it.startsWith(prefix) ? it.slice(prefix.length) : it));
  return names.length > 0 ? `waits for ${names.join(', ')}` : 'pending';
}

function stepIcon(step: Step): Pick<Line, 'icon' | 'color'> {
  if (step.problems.length > 0) {
    return { icon: 'warning', color: 'list.warningForeground' };
  }
  switch (step.status) {
    case 'completed':
      return { icon: 'pass-filled', color: 'testing.iconPassed' };
    case 'skipped':
      return { icon: 'debug-step-over' };
    case 'failed':
      return { icon: 'error', color: 'testing.iconFailed' };
    case 'blocked':
      return { icon: 'stop', color: 'testing.iconFailed' };
    case 'in_progress':
      return { icon: 'play-circle', color: 'charts.blue' };
    default:
      return { icon: step.ready ? 'circle-large-outline' : 'debug-pause' };
  }
}

export interface StatusLine {
  text: string;
  tooltip: string;
  /** The steps that a click offers. Without any, a click opens the next step. */
  claimed: Claimed[];
}

const LONGEST_TITLE = 40;

/** The item of the status bar for all folders of the window. Without folders that have plans there is none. */
export function statusLine(of: readonly Status[]): StatusLine | undefined {
  if (of.length === 0) {
    return undefined;
  }
  const claimed = of.flatMap((it) => it.claimed).sort((a, b) => (a.since < b.since ? 1 : -1));
  const ready = sum(of.map((it) => it.ready));
  const problems = sum(of.map((it) => it.problems));
  const [first] = claimed;
  const more = claimed.length > 1 ? ` +${claimed.length - 1}` : '';
  const text =
    first === undefined ? `$(checklist) ${ready} ready` : `$(lock) ${plain(first.id)} ${plain(cut(first.title))}${more}`;
  const lines = [
    ...claimed.map((it) => `claimed: ${it.id} ${it.title}`),
    `${ready} ready`,
    ...counted(problems, problems === 1 ? 'problem' : 'problems'),
    first === undefined ? 'Click to open the next step' : 'Click to open the claimed step',
  ];
  return { text, tooltip: lines.join('\n'), claimed };
}

function sum(of: number[]): number {
  return of.reduce((a, b) => a + b, 0);
}

function cut(title: string): string {
  const characters = Array.from(new Intl.Segmenter().segment(title), (it) => it.segment);
  return characters.length > LONGEST_TITLE ? `${characters.slice(0, LONGEST_TITLE - 1).join('')}…` : title;
}

/** The text of a status bar item has icons as `$(name)`. A title from a file must not bring its own. */
function plain(text: string): string {
  return text.replaceAll('$(', '\\$(');
}
