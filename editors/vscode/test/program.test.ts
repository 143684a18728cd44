import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { Refusal, ask, explain, probe, sentence } from '../src/program.ts';
import type { Program } from '../src/program.ts';

const place = mkdtempSync(join(tmpdir(), 'planwatch-extension-'));
after(() => {
  rmSync(place, { recursive: true });
});

/** A program that is this text of a shell. */
function script(name: string, text: string, by = ''): Program {
  const path = join(place, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return { path, by };
}

const VERSION = 'if [ "$1" = --version ]; then echo planwatch 0.1.0; exit; fi';

test('a program with a language server has no fault', async () => {
  assert.equal(await probe(script('good', `${VERSION}\n[ "$1 $2" = "lsp --help" ]`)), undefined);
});

test('each fault is found and explained', async () => {
  const missing = { path: join(place, 'none'), by: '' };
  assert.deepEqual(await probe(missing), { kind: 'missing' });
  assert.equal(
    explain({ kind: 'missing' }, 'planwatch'),
    'The program `planwatch` was not found. Install planwatch, or set `planwatch.path` to its place.',
  );

  const old = await probe(script('old', `${VERSION}\nexit 2`));
  assert.deepEqual(old, { kind: 'no-server', version: 'planwatch 0.1.0' });
  assert.match(explain(old, 'pw'), /^`pw` \(planwatch 0\.1\.0\) has no language server\. /);

  const other = await probe(script('other', 'echo cat: unknown option >&2; exit 1'));
  assert.deepEqual(other, { kind: 'broken', said: 'cat: unknown option' });
  assert.match(explain(other, 'cat'), /does not answer as planwatch: cat: unknown option\. /);
  assert.deepEqual(await probe(script('silent', 'exit 3')), { kind: 'broken', said: 'it ended with 3' });
});

test('an answer is read, also one that says that nothing is ready', async () => {
  const program = script('answers', 'echo "{\\"args\\": \\"$*\\", \\"by\\": \\"$PLANWATCH_BY\\", \\"in\\": \\"$PWD\\"}"; exit 7', 'ann');
  assert.deepEqual(await ask(program, ['next', '--', 'a b'], place), { args: '--json next -- a b', by: 'ann', in: place });
});

test('a refusal has the sentence and the hint of planwatch', async () => {
  const error = { error: { code: 'claimed', message: 'ann works on `auth:2`', hint: 'wait for ann' } };
  const program = script('refuses', `echo '${JSON.stringify(error)}' >&2; exit 4`);
  await assert.rejects(ask(program, ['claim'], place), (it) => {
    assert.ok(it instanceof Refusal);
    assert.equal(it.code, 'claimed');
    assert.equal(sentence(it), 'planwatch: ann works on `auth:2` (wait for ann)');
    return true;
  });
});

test('an error that is not JSON is shown by its first line', async () => {
  const program = script('breaks', "printf 'first\\nsecond\\n' >&2; exit 101");
  await assert.rejects(ask(program, ['claim'], place), { message: 'first' });
  await assert.rejects(ask(script('killed', 'kill -9 $$'), ['claim'], place), { message: 'planwatch ended with signal SIGKILL' });
  await assert.rejects(ask({ path: join(place, 'none'), by: '' }, ['claim'], place), /was not found/);
});
