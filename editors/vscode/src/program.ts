/** Starts the program `planwatch`, checks that it exists, and reads its answers. */

import { execFile } from 'node:child_process';

export interface Program {
  path: string;
  /** The user's name, or an empty text for planwatch's own choice. */
  by: string;
}

/** Why the server cannot be started. */
export type Fault = { kind: 'missing' } | { kind: 'no-server'; version: string } | { kind: 'broken'; said: string };

interface Ran {
  /** The exit code, or the system's name of the error if the program did not start. */
  code: number | string;
  stdout: string;
  stderr: string;
}

/** A hanging program must not keep the editor waiting. */
const TIME_LIMIT = 60_000;
const LONGEST_ANSWER = 64 * 1024 * 1024;

export function environment(program: Program): NodeJS.ProcessEnv {
  return program.by === '' ? process.env : { ...process.env, PLANWATCH_BY: program.by };
}

function start(program: Program, args: string[], cwd?: string): Promise<Ran> {
  const options = { env: environment(program), timeout: TIME_LIMIT, maxBuffer: LONGEST_ANSWER, ...(cwd === undefined ? {} : { cwd }) };
  return new Promise((resolve) => {
    execFile(program.path, args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? `signal ${error.signal ?? 'unknown'}`), stdout, stderr });
    });
  });
}

/** Checks that the program is there and has the language server. */
export async function probe(program: Program): Promise<Fault | undefined> {
  const version = await start(program, ['--version']);
  if (version.code === 'ENOENT') {
    return { kind: 'missing' };
  }
  if (version.code !== 0 || !version.stdout.startsWith('planwatch ')) {
    return { kind: 'broken', said: firstLine(version.stderr) || firstLine(version.stdout) || `it ended with ${version.code}` };
  }
  const help = await start(program, ['lsp', '--help']);
  return help.code === 0 ? undefined : { kind: 'no-server', version: version.stdout.trim() };
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? '';
}

/** The message for a fault: what is wrong, and what to do. */
export function explain(fault: Fault, path: string): string {
  const setting = 'set `planwatch.path` to its place';
  switch (fault.kind) {
    case 'missing':
      return `The program \`${path}\` was not found. Install planwatch, or ${setting}.`;
    case 'no-server':
      return `\`${path}\` (${fault.version}) has no language server. Install a newer planwatch, or ${setting}.`;
    case 'broken':
      return `\`${path}\` does not answer as planwatch: ${fault.said}. Install planwatch, or ${setting}.`;
  }
}

/** A refusal of planwatch: its sentence, and what to do instead. */
export class Refusal extends Error {
  readonly code: string;
  readonly hint: string;

  constructor(code: string, message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** Exit code of an answer that names no step, because none is ready. The answer is on stdout all the same. */
const NOTHING_READY = 7;

/** Runs a verb in a directory and returns its JSON. Throws a `Refusal` if planwatch refuses. */
export async function ask(program: Program, args: string[], cwd: string): Promise<unknown> {
  const ran = await start(program, ['--json', ...args], cwd);
  if (ran.code === 0 || ran.code === NOTHING_READY) {
    return JSON.parse(ran.stdout);
  }
  if (ran.code === 'ENOENT') {
    throw new Refusal('missing', explain({ kind: 'missing' }, program.path), '');
  }
  throw refusal(ran);
}

function refusal(ran: Ran): Refusal {
  try {
    const { error } = JSON.parse(ran.stderr) as { error: { code: string; message: string; hint: string | null } };
    return new Refusal(error.code, error.message, error.hint ?? '');
  } catch {
    return new Refusal('failed', firstLine(ran.stderr) || `planwatch ended with ${ran.code}`, '');
  }
}

/** Messages of planwatch have backticks and begin in lower case; this is how the editor shows one. */
export function sentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof Refusal && error.hint !== '' ? ` (${error.hint})` : '';
  return `planwatch: ${message}${hint}`;
}
