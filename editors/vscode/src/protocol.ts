/** What the extension asks the server for, and the parts of its answers that it reads. They are those of `planwatch --json`. */

export const REQUESTS = { plans: 'planwatch/plans', plan: 'planwatch/plan', status: 'planwatch/status' } as const;

/** Sent by the server when plans changed on disk, whoever changed them. */
export const DID_CHANGE = 'planwatch/didChange';

export interface Changed {
  folder: string;
  plans: string[];
}

export interface Plan {
  id: string;
  title: string;
  status: string;
  path: string;
  steps_total: number;
  steps_completed: number;
  steps_skipped: number;
  steps_failed: number;
  steps_blocked: number;
  steps_in_progress: number;
  steps_ready: number;
  problems: string[];
}

export interface Claim {
  id: string;
  by: string;
  at: string;
}

export interface Step {
  id: string;
  plan: string;
  number: string;
  title: string;
  status: string;
  ready: boolean;
  waits_for: string[];
  phase: string | null;
  assignee: string | null;
  claim: Claim | null;
  lapsed: boolean;
  attempts: { outcome: string }[];
  tasks_done: number;
  tasks_total: number;
  path: string;
  problems: string[];
}

export interface PlanList {
  plans: Plan[];
}

export interface StepList {
  plan: Plan;
  steps: Step[];
}

export interface Claimed {
  id: string;
  title: string;
  uri: string;
  since: string;
}

/** The state of one folder. */
export interface Status {
  /** A URI. */
  plans_dir: string;
  claimed: Claimed[];
  ready: number;
  problems: number;
}

/** The answer of `planwatch next`. */
export interface Next {
  state: string;
  step: Step | null;
  why: string;
}

/**
 * Names a step or a plan, as the argument of the server's code actions and lenses does. `uri` is that of a file of the plan;
 * `after` is the number behind which a step is added.
 */
export interface Target {
  id?: string;
  plan?: string;
  uri?: string;
  folder?: string;
  after?: string;
}
