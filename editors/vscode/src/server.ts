/** The language server of this window: started and restarted here, and asked for plans and for the state of each folder. */

import { EventEmitter, Uri, commands, window, workspace } from 'vscode';
import type { Disposable, LogOutputChannel, WorkspaceFolder } from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import { environment, explain, probe } from './program.ts';
import type { Fault, Program } from './program.ts';
import { DID_CHANGE, REQUESTS } from './protocol.ts';
import type { PlanList, Status, StepList } from './protocol.ts';

/** `when` clauses of the view and of commands read it. */
const HAS_PLANS = 'planwatch.hasPlans';

/** A folder of the window in which the server found plans. */
export interface Home {
  folder: WorkspaceFolder;
  status: Status;
  /** The path of the plans directory. */
  plansDir: string;
}

export function program(): Program {
  const settings = workspace.getConfiguration('planwatch');
  return { path: settings.get('path', 'planwatch').trim() || 'planwatch', by: settings.get('by', '').trim() };
}

export class Server implements Disposable {
  private readonly log: LogOutputChannel;
  private readonly changed = new EventEmitter<void>();
  private client: LanguageClient | undefined;
  /** Starts and stops run one after the other. */
  private last: Promise<void> = Promise.resolve();
  private isRefreshing = false;
  private isStale = false;

  /** Fired when plans or the states of folders may have changed. */
  readonly onDidChange = this.changed.event;
  homes: readonly Home[] = [];

  constructor(log: LogOutputChannel) {
    this.log = log;
  }

  /** Starts the server, or starts it again with the settings as they are now. */
  restart(): Promise<void> {
    this.last = this.last.then(async () => {
      await this.stop();
      await this.start();
      await this.refresh();
    });
    return this.last;
  }

  private async start(): Promise<void> {
    const chosen = program();
    const fault = await probe(chosen);
    if (fault !== undefined) {
      this.log.error(explain(fault, chosen.path));
      // Without waiting: the message stays until the person answers it.
      void report(fault, chosen.path);
      return;
    }
    const client = new LanguageClient(
      'planwatch',
      'planwatch',
      { command: chosen.path, args: ['lsp'], options: { env: environment(chosen) } },
      {
        documentSelector: [{ scheme: 'file', language: 'markdown' }],
        initializationOptions: { changes: true, prompts: true },
        outputChannel: this.log,
      },
    );
    client.onNotification(DID_CHANGE, () => void this.refresh());
    try {
      await client.start();
      this.client = client;
    } catch (error) {
      this.log.error(String(error));
      void window.showErrorMessage('planwatch: the language server did not start. The output panel says why.');
    }
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      // A server that has ended by itself cannot be stopped.
      this.log.warn(String(error));
    }
  }

  /** Asks for the state of every folder. A call that arrives meanwhile causes one more round. */
  async refresh(): Promise<void> {
    this.isStale = true;
    if (this.isRefreshing) {
      return;
    }
    this.isRefreshing = true;
    while (this.isStale) {
      this.isStale = false;
      const folders = workspace.workspaceFolders ?? [];
      const found = await Promise.all(folders.map((it) => this.home(it)));
      this.homes = found.filter((it) => it !== undefined);
    }
    this.isRefreshing = false;
    await commands.executeCommand('setContext', HAS_PLANS, this.homes.length > 0);
    this.changed.fire();
  }

  private async home(folder: WorkspaceFolder): Promise<Home | undefined> {
    try {
      const status = await this.ask<Status>(REQUESTS.status, { folder: folder.uri.toString() });
      return status && { folder, status, plansDir: Uri.parse(status.plans_dir).fsPath };
    } catch (error) {
      this.log.debug(`${folder.name}: ${String(error)}`);
      return undefined;
    }
  }

  /** The plans of a folder, in the order of `planwatch list`. */
  plans(home: Home): Promise<PlanList | undefined> {
    return this.ask(REQUESTS.plans, { folder: home.folder.uri.toString() });
  }

  /** A plan with its steps. */
  plan(home: Home, id: string): Promise<StepList | undefined> {
    return this.ask(REQUESTS.plan, { folder: home.folder.uri.toString(), id });
  }

  private async ask<T>(method: string, params: object): Promise<T | undefined> {
    return await this.client?.sendRequest<T>(method, params);
  }

  dispose(): void {
    this.changed.dispose();
    void this.stop();
  }
}

async function report(fault: Fault, path: string): Promise<void> {
  const settings = 'Open Settings';
  if ((await window.showErrorMessage(explain(fault, path), settings)) === settings) {
    await commands.executeCommand('workbench.action.openSettings', 'planwatch.path');
  }
}
