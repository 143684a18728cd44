/** The arguments of the verbs that the extension runs. What a person typed never counts as an option. */

/** A step or a plan, with the words that the person typed. */
export type Verb =
  | { verb: 'claim'; id?: string }
  | { verb: 'next'; plan?: string }
  | { verb: 'release' | 'start' | 'done'; id: string }
  | { verb: 'fail'; id: string; reason: string }
  | { verb: 'attempt'; id: string; outcome: string; notes: string }
  | { verb: 'note'; id: string; text: string }
  | { verb: 'add'; plan: string; title: string; after?: string };

export function argumentsOf(it: Verb): string[] {
  switch (it.verb) {
    case 'claim':
      return ['claim', ...operands(it.id)];
    case 'next':
      return ['next', ...operands(it.plan)];
    case 'release':
    case 'start':
    case 'done':
      return [it.verb, ...operands(it.id)];
    case 'fail':
      return ['fail', ...(it.reason === '' ? [] : [`--message=${it.reason}`]), ...operands(it.id)];
    case 'attempt':
      return ['attempt', ...(it.notes === '' ? [] : [`--notes=${it.notes}`]), ...operands(it.id, it.outcome)];
    case 'note':
      return ['note', ...operands(it.id, it.text)];
    case 'add':
      return ['add', ...(it.after === undefined ? [] : [`--after=${it.after}`]), ...operands(it.plan, it.title)];
  }
}

function operands(...of: (string | undefined)[]): string[] {
  const given = of.filter((it) => it !== undefined);
  return given.length > 0 ? ['--', ...given] : [];
}

const PAST = {
  claim: 'claimed',
  release: 'released',
  start: 'started',
  done: 'completed',
  fail: 'marked as failed',
  attempt: 'recorded an attempt at',
  note: 'added a note to',
} as const;

/** What to say when a verb has succeeded. */
export function said(verb: keyof typeof PAST, id: string): string {
  return `planwatch: ${PAST[verb]} ${id}`;
}
