import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Manifest {
  main: string;
  contributes: {
    commands: { command: string }[];
    menus: Record<string, { command: string; when: string }[]>;
    views: Record<string, { id: string; when: string }[]>;
    configuration: { properties: Record<string, unknown> };
  };
  capabilities: { untrustedWorkspaces: { restrictedConfigurations: string[] } };
}

function text(name: string): string {
  return readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
}

const manifest = JSON.parse(text('package.json')) as Manifest;
const { contributes } = manifest;

test('the commands of the manifest are those that the code registers', () => {
  const names = contributes.commands.map((it) => it.command.replace('planwatch.ui.', ''));
  const registered = [...text('src/commands.ts').matchAll(/^ {6}(\w+): \((?:it)?\) => this\./gm)].map((it) => it[1]);
  assert.deepEqual(names.toSorted(), registered.toSorted());
});

test('menus name commands that exist', () => {
  const known = new Set(contributes.commands.map((it) => it.command));
  for (const entries of Object.values(contributes.menus)) {
    for (const { command } of entries) {
      assert.ok(known.has(command), command);
    }
  }
});

test('a menu of a step shows a verb where the step offers it', () => {
  const entries = contributes.menus['view/item/context'] ?? [];
  const shown = (verb: string, context: string) =>
    entries.some(({ command, when }) => {
      const pattern = /viewItem =~ \/(.*)\/$/.exec(when)?.[1];
      return command === `planwatch.ui.${verb}` && pattern !== undefined && new RegExp(pattern).test(context);
    });
  assert.ok(shown('done', 'step claim start done fail'));
  assert.ok(!shown('done', 'step fail'));
  assert.ok(shown('claim', 'plan'));
  assert.ok(!shown('release', 'plan'));
});

test('the server\'s own commands are not registered again', () => {
  for (const { command } of contributes.commands) {
    assert.match(command, /^planwatch\.ui\.\w+$/);
  }
});

test('a folder that is not trusted cannot choose the program', () => {
  const { restrictedConfigurations } = manifest.capabilities.untrustedWorkspaces;
  assert.ok(restrictedConfigurations.includes('planwatch.path'));
  for (const name of restrictedConfigurations) {
    assert.ok(name in contributes.configuration.properties, name);
  }
});
