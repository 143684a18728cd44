import assert from 'node:assert/strict';
import { test } from 'node:test';

import { argumentsOf, said } from '../src/verbs.ts';
import type { Verb } from '../src/verbs.ts';

test('every verb gets its arguments', () => {
  const cases: [Verb, string[]][] = [
    [{ verb: 'next' }, ['next']],
    [{ verb: 'next', plan: 'auth' }, ['next', '--', 'auth']],
    [{ verb: 'claim' }, ['claim']],
    [{ verb: 'claim', id: 'auth:2' }, ['claim', '--', 'auth:2']],
    [{ verb: 'release', id: 'auth:2' }, ['release', '--', 'auth:2']],
    [{ verb: 'start', id: 'auth:2' }, ['start', '--', 'auth:2']],
    [{ verb: 'done', id: 'auth:2' }, ['done', '--', 'auth:2']],
    [{ verb: 'fail', id: 'auth:2', reason: '' }, ['fail', '--', 'auth:2']],
    [{ verb: 'fail', id: 'auth:2', reason: 'no disk' }, ['fail', '--message=no disk', '--', 'auth:2']],
    [{ verb: 'attempt', id: 'auth:2', outcome: 'no answer', notes: '' }, ['attempt', '--', 'auth:2', 'no answer']],
    [{ verb: 'attempt', id: 'auth:2', outcome: 'partial', notes: 'half' }, ['attempt', '--notes=half', '--', 'auth:2', 'partial']],
    [{ verb: 'note', id: 'auth', text: 'a text' }, ['note', '--', 'auth', 'a text']],
    [{ verb: 'add', plan: 'auth', title: 'Deploy' }, ['add', '--', 'auth', 'Deploy']],
    [{ verb: 'add', plan: 'auth', title: 'Deploy', after: '2.5' }, ['add', '--after=2.5', '--', 'auth', 'Deploy']],
  ];
  for (const [verb, expected] of cases) {
    assert.deepEqual(argumentsOf(verb), expected);
  }
});

test('words that look like options are passed as operands', () => {
  const texts = ['--force', '-m', '--', ''];
  for (const text of texts) {
    const args = argumentsOf({ verb: 'note', id: 'auth:2', text });
    assert.deepEqual(args.slice(args.indexOf('--') + 1), ['auth:2', text]);
  }
  assert.deepEqual(argumentsOf({ verb: 'fail', id: 'a:1', reason: '--force' }), ['fail', '--message=--force', '--', 'a:1']);
});

test('a success message is in the past tense', () => {
  assert.equal(said('done', 'auth:2'), 'planwatch: completed auth:2');
});
