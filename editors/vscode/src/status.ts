/** The item of the status bar: the step that you have claimed, or how many are ready. */

import { StatusBarAlignment, Uri, commands, window } from 'vscode';
import type { Disposable, StatusBarItem } from 'vscode';

import { openFile } from './files.ts';
import { statusLine } from './model.ts';
import type { Claimed } from './protocol.ts';
import type { Server } from './server.ts';

export class StatusBar implements Disposable {
  private readonly server: Server;
  private readonly item: StatusBarItem;
  private readonly disposables: { dispose(): unknown }[];

  constructor(server: Server) {
    this.server = server;
    this.item = window.createStatusBarItem('planwatch.ui.status', StatusBarAlignment.Left);
    this.item.name = 'planwatch';
    this.item.command = 'planwatch.ui.current';
    this.disposables = [
      this.item,
      server.onDidChange(() => {
        this.show();
      }),
      commands.registerCommand('planwatch.ui.current', () => this.open()),
    ];
  }

  private line() {
    return statusLine(this.server.homes.map((it) => it.status));
  }

  private show(): void {
    const line = this.line();
    if (line === undefined) {
      this.item.hide();
      return;
    }
    this.item.text = line.text;
    this.item.tooltip = line.tooltip;
    this.item.show();
  }

  private async open(): Promise<void> {
    const claimed = this.line()?.claimed ?? [];
    const chosen = claimed.length > 1 ? await choose(claimed) : claimed[0];
    if (chosen !== undefined) {
      await openFile(Uri.parse(chosen.uri, true));
    } else if (claimed.length === 0) {
      await commands.executeCommand('planwatch.ui.next');
    }
  }

  dispose(): void {
    for (const it of this.disposables) {
      it.dispose();
    }
  }
}

async function choose(claimed: Claimed[]): Promise<Claimed | undefined> {
  const items = claimed.map((it) => ({ label: it.title, description: it.id, it }));
  return (await window.showQuickPick(items, { title: 'Steps that you have claimed' }))?.it;
}
