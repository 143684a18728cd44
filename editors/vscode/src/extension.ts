/** The entry of the extension: starts the server, and connects the tree, the status bar and the commands with it. */

import { window, workspace } from 'vscode';
import type { ExtensionContext } from 'vscode';

import { Commands } from './commands.ts';
import { Server } from './server.ts';
import { StatusBar } from './status.ts';
import { Tree } from './tree.ts';

export function activate(context: ExtensionContext): void {
  const log = window.createOutputChannel('planwatch', { log: true });
  const server = new Server(log);
  const tree = new Tree(server);
  context.subscriptions.push(
    log,
    server,
    tree,
    new StatusBar(server),
    window.createTreeView('planwatch.ui.plans', { treeDataProvider: tree, showCollapseAll: true }),
    ...new Commands(server).register(),
    workspace.onDidChangeConfiguration((it) => {
      if (it.affectsConfiguration('planwatch.path') || it.affectsConfiguration('planwatch.by')) {
        void server.restart();
      }
    }),
    workspace.onDidChangeWorkspaceFolders(() => void server.refresh()),
  );
  void server.restart();
}
