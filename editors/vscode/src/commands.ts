/** The commands of the extension. Each of them runs a verb of planwatch on the files, as the command line does. */

import { Uri, commands, window, workspace } from 'vscode';
import type { Disposable, TextDocument } from 'vscode';
import { dirname, sep } from 'node:path';

import { fileOf, openFile } from './files.ts';
import { progress, state, verbs } from './model.ts';
import { ask, sentence } from './program.ts';
import type { Next, Step, Target } from './protocol.ts';
import { program } from './server.ts';
import type { Home, Server } from './server.ts';
import type { Node } from './tree.ts';
import { argumentsOf, said } from './verbs.ts';
import type { Verb } from './verbs.ts';

/** A plan or a step, and where it is. `number` is that of a step. */
interface Place {
  home: Home;
  id: string;
  plan: string;
  number?: string;
  file: Uri;
}

/** The argument that tree items, the server's code actions and the command palette pass to a command. */
type Given = Node | Target | undefined;

/** The part of an answer of `show` or of a change that commands read. */
interface Shown {
  kind: string;
  id: string;
  plan?: string;
  number?: string;
  path: string;
}

export class Commands {
  private readonly server: Server;

  constructor(server: Server) {
    this.server = server;
  }

  register(): Disposable[] {
    const all: Record<string, (given: Given) => Promise<void>> = {
      open: (it) => this.open(it),
      next: (it) => this.next(it),
      claim: (it) => this.claim(it),
      release: (it) => this.simple('release', it),
      start: (it) => this.simple('start', it),
      done: (it) => this.simple('done', it),
      fail: (it) => this.fail(it),
      attempt: (it) => this.attempt(it),
      note: (it) => this.note(it),
      add: (it) => this.add(it),
      refresh: () => this.server.refresh(),
      restart: () => this.server.restart(),
    };
    return Object.entries(all).map(([name, run]) =>
      commands.registerCommand(`planwatch.ui.${name}`, async (given: Given) => {
        try {
          await run(given);
        } catch (error) {
          void window.showErrorMessage(sentence(error));
        }
      }),
    );
  }

  private async open(given: Given): Promise<void> {
    const place = await this.place(given);
    if (place !== undefined) {
      await openFile(place.file);
    }
  }

  private async next(given: Given): Promise<void> {
    const place = given === undefined ? undefined : await this.place(given);
    const home = place?.home ?? (await this.home());
    if (home === undefined) {
      return;
    }
    const verb: Verb = place === undefined ? { verb: 'next' } : { verb: 'next', plan: place.plan };
    const answer = (await run(home, verb)) as Next;
    if (answer.step === null) {
      void window.showInformationMessage(`planwatch: no step is ready: ${answer.why}`);
      return;
    }
    await openFile(fileOf(home, answer.step.path));
    window.setStatusBarMessage(`planwatch: ${answer.step.id}: ${answer.why}`, 8000);
  }

  /**
   * Claims the given step, or the next one of the given plan. Without either, claims the step in the editor if it can be claimed,
   * else the next one.
   */
  private async claim(given: Given): Promise<void> {
    const place = given === undefined ? await this.ready() : await this.place(given);
    const home = place?.home ?? (await this.home());
    if (home === undefined || !(await isSaved(place === undefined ? home.plansDir : dirname(place.file.fsPath)))) {
      return;
    }
    const answer = (await run(home, place === undefined ? { verb: 'claim' } : { verb: 'claim', id: place.id })) as Next;
    if (answer.step === null) {
      void window.showInformationMessage(`planwatch: no step was claimed: ${answer.why}`);
      return;
    }
    await openFile(fileOf(home, answer.step.path));
    await this.succeeded(said('claim', answer.step.id));
  }

  /** The step in the editor, if it can be claimed. */
  private async ready(): Promise<Place | undefined> {
    const place = await this.inEditor();
    if (place?.number === undefined) {
      return undefined;
    }
    const list = await this.server.plan(place.home, place.plan);
    const step = list?.steps.find((it) => it.id === place.id);
    return step !== undefined && verbs(step).includes('claim') ? place : undefined;
  }

  private async simple(verb: 'release' | 'start' | 'done', given: Given): Promise<void> {
    const place = await this.step(given, verb);
    if (place !== undefined && (await this.change(place, { verb, id: place.id }))) {
      await this.succeeded(said(verb, place.id));
    }
  }

  private async fail(given: Given): Promise<void> {
    const place = await this.step(given, 'fail');
    const reason = place && (await typed(`Why did ${place.id} fail?`, 'The reason, or nothing'));
    if (place === undefined || reason === undefined) {
      return;
    }
    if (await this.change(place, { verb: 'fail', id: place.id, reason })) {
      await this.succeeded(said('fail', place.id));
    }
  }

  private async attempt(given: Given): Promise<void> {
    const place = await this.step(given);
    const outcome = place && (await typed(`Outcome of the attempt at ${place.id}`, 'For example: no answer', true));
    const notes = outcome && (await typed('Notes on the attempt', 'What happened, or nothing'));
    if (place === undefined || outcome === undefined || notes === undefined) {
      return;
    }
    if (await this.change(place, { verb: 'attempt', id: place.id, outcome, notes })) {
      await this.succeeded(said('attempt', place.id));
    }
  }

  private async note(given: Given): Promise<void> {
    const place = await this.place(given);
    const text = place && (await typed(`Note on ${place.id}`, 'The text of the note', true));
    if (place === undefined || text === undefined) {
      return;
    }
    if (await this.change(place, { verb: 'note', id: place.id, text })) {
      await this.succeeded(said('note', place.id));
    }
  }

  /** Adds a step behind the given one, or at the end of the given plan. */
  private async add(given: Given): Promise<void> {
    const place = await this.place(given);
    const after = isTarget(given) ? (given.after ?? place?.number) : place?.number;
    const where = after === undefined ? 'at the end of' : `after step ${after} of`;
    const title = place && (await typed(`Title of the new step ${where} ${place.plan}`, 'What is to be done', true));
    if (place === undefined || title === undefined) {
      return;
    }
    const verb: Verb = { verb: 'add', plan: place.plan, title, ...(after === undefined ? {} : { after }) };
    const report = (await this.change(place, verb)) as { changes: Shown[] } | undefined;
    const added = report?.changes[0];
    if (added !== undefined) {
      await openFile(fileOf(place.home, added.path));
      await this.succeeded(`planwatch: added ${added.id}`);
    }
  }

  /** Runs a verb that writes. Returns `undefined` if the person chose not to save unsaved text. */
  private async change(place: Place, verb: Verb): Promise<unknown> {
    return (await isSaved(dirname(place.file.fsPath))) ? await run(place.home, verb) : undefined;
  }

  private async succeeded(message: string): Promise<void> {
    window.setStatusBarMessage(message, 5000);
    await this.server.refresh();
  }

  /** The given step. Without one, the step in the editor, or a step that the person picks from those that allow the verb. */
  private async step(given: Given, verb?: string): Promise<Place | undefined> {
    const place = given === undefined ? await this.inEditor() : await this.place(given);
    return place?.number === undefined ? await this.picked(verb, place) : place;
  }

  private async place(given: Given): Promise<Place | undefined> {
    if (given === undefined) {
      return (await this.inEditor()) ?? (await this.picked());
    }
    if (isTarget(given)) {
      return await this.target(given);
    }
    switch (given.kind) {
      case 'folder':
        return undefined;
      case 'plan':
        return { home: given.home, id: given.plan.id, plan: given.plan.id, file: fileOf(given.home, given.plan.path) };
      case 'step':
        return placeOf(given.home, given.step);
    }
  }

  /** The step or plan that the server names by a file, an id, or a plan. */
  private async target(given: Target): Promise<Place | undefined> {
    const file = given.uri === undefined ? undefined : Uri.parse(given.uri, true);
    const home = this.homeOf(file ?? (given.folder === undefined ? undefined : Uri.parse(given.folder, true))) ?? (await this.home());
    const name = file?.fsPath ?? given.id ?? given.plan;
    if (home === undefined || name === undefined) {
      return undefined;
    }
    const shown = (await ask(program(), ['show', '--', name], home.folder.uri.fsPath)) as Shown;
    return {
      home,
      id: shown.id,
      plan: shown.plan ?? shown.id,
      ...(shown.number === undefined ? {} : { number: shown.number }),
      file: fileOf(home, shown.path),
    };
  }

  private homeOf(uri: Uri | undefined): Home | undefined {
    const path = uri?.fsPath;
    return path === undefined
      ? undefined
      : this.server.homes.find((it) => isIn(path, it.plansDir) || path === it.folder.uri.fsPath);
  }

  private async inEditor(): Promise<Place | undefined> {
    const uri = window.activeTextEditor?.document.uri;
    if (uri === undefined || this.homeOf(uri) === undefined || !/^(plan|step-[\d.]+)\.md$/.test(uri.path.split('/').at(-1) ?? '')) {
      return undefined;
    }
    return await this.target({ uri: uri.toString() });
  }

  private async home(): Promise<Home | undefined> {
    const { homes } = this.server;
    if (homes.length === 0) {
      void window.showInformationMessage('planwatch: no folder of this window has plans, or the language server does not run.');
    }
    if (homes.length < 2) {
      return homes[0];
    }
    const items = homes.map((home) => ({ label: home.folder.name, description: `${home.status.ready} ready`, home }));
    return (await window.showQuickPick(items, { title: 'Folder' }))?.home;
  }

  /** A step that the person picks, within a plan if one is given. */
  private async picked(verb?: string, within?: Place): Promise<Place | undefined> {
    const home = within?.home ?? (await this.home());
    const plan = home && (within?.plan ?? (await this.pickedPlan(home)));
    if (home === undefined || plan === undefined) {
      return undefined;
    }
    const list = await this.server.plan(home, plan);
    const steps = (list?.steps ?? []).filter((it) => verb === undefined || verbs(it).includes(verb));
    if (steps.length === 0) {
      void window.showInformationMessage(`planwatch: no step of ${plan} allows that now.`);
      return undefined;
    }
    const items = steps.map((step) => ({ label: `${step.number}  ${step.title}`, description: state(step), step }));
    const chosen = await window.showQuickPick(items, { title: `Step of ${plan}`, matchOnDescription: true });
    return chosen === undefined ? undefined : placeOf(home, chosen.step);
  }

  private async pickedPlan(home: Home): Promise<string | undefined> {
    const list = await this.server.plans(home);
    const items = (list?.plans ?? []).map((it) => ({ label: it.title, description: it.id, detail: progress(it), id: it.id }));
    return (await window.showQuickPick(items, { title: 'Plan', matchOnDescription: true }))?.id;
  }
}

function isTarget(given: Given): given is Target {
  return given !== undefined && !('kind' in given);
}

function placeOf(home: Home, step: Step): Place {
  return { home, id: step.id, plan: step.plan, number: step.number, file: fileOf(home, step.path) };
}

function run(home: Home, verb: Verb): Promise<unknown> {
  return ask(program(), argumentsOf(verb), home.folder.uri.fsPath);
}

/** Asks for a text, which may be empty unless it is required. Returns `undefined` if the person pressed Escape. */
async function typed(title: string, placeHolder: string, isRequired = false): Promise<string | undefined> {
  const validateInput = (text: string) => (isRequired && text.trim() === '' ? 'This must not be empty' : undefined);
  return await window.showInputBox({ title, placeHolder, validateInput, ignoreFocusOut: true });
}

function isIn(path: string, directory: string): boolean {
  return path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

/**
 * Verbs work on files. Where an editor below the directory holds unsaved text, the person decides whether to save it first: the
 * verb would not see it, and the editor would find that its file was changed.
 */
async function isSaved(directory: string): Promise<boolean> {
  const unsaved = workspace.textDocuments.filter((it) => it.isDirty && isIn(it.uri.fsPath, directory));
  if (unsaved.length === 0) {
    return true;
  }
  const save = 'Save and Continue';
  const names = unsaved.map((it) => workspace.asRelativePath(it.uri)).join(', ');
  const chosen = await window.showWarningMessage(`planwatch works on files, and this text is not saved: ${names}`, save);
  return chosen === save && (await saved(unsaved));
}

async function saved(documents: TextDocument[]): Promise<boolean> {
  for (const it of documents) {
    if (!(await it.save())) {
      return false;
    }
  }
  return true;
}
