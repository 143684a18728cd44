/** The tree of plans and steps in the explorer. */

import { EventEmitter, ThemeColor, ThemeIcon, TreeItem, TreeItemCollapsibleState } from 'vscode';
import type { Disposable, TreeDataProvider } from 'vscode';

import { planLine, stepLine } from './model.ts';
import type { Line } from './model.ts';
import type { Plan, Step } from './protocol.ts';
import type { Home, Server } from './server.ts';

export type Node =
  { kind: 'folder'; home: Home } | { kind: 'plan'; home: Home; plan: Plan } | { kind: 'step'; home: Home; step: Step };

export class Tree implements TreeDataProvider<Node>, Disposable {
  private readonly server: Server;
  private readonly changed = new EventEmitter<undefined>();
  private readonly following: Disposable;
  readonly onDidChangeTreeData = this.changed.event;

  constructor(server: Server) {
    this.server = server;
    this.following = server.onDidChange(() => {
      this.changed.fire(undefined);
    });
  }

  async getChildren(node?: Node): Promise<Node[]> {
    const { homes } = this.server;
    if (node === undefined) {
      const [only] = homes;
      return homes.length > 1 ? homes.map((home) => ({ kind: 'folder', home })) : only === undefined ? [] : this.plans(only);
    }
    switch (node.kind) {
      case 'folder':
        return this.plans(node.home);
      case 'plan': {
        const list = await this.server.plan(node.home, node.plan.id);
        return (list?.steps ?? []).map((step) => ({ kind: 'step', home: node.home, step }));
      }
      case 'step':
        return [];
    }
  }

  private async plans(home: Home): Promise<Node[]> {
    const list = await this.server.plans(home);
    return (list?.plans ?? []).map((plan) => ({ kind: 'plan', home, plan }));
  }

  getTreeItem(node: Node): TreeItem {
    switch (node.kind) {
      case 'folder': {
        const item = new TreeItem(node.home.folder.name, TreeItemCollapsibleState.Expanded);
        item.id = node.home.folder.uri.toString();
        item.iconPath = ThemeIcon.Folder;
        return item;
      }
      case 'plan':
        return filled(planLine(node.plan), node, node.plan.id, TreeItemCollapsibleState.Collapsed);
      case 'step':
        return filled(stepLine(node.step), node, node.step.id, TreeItemCollapsibleState.None);
    }
  }

  dispose(): void {
    this.following.dispose();
    this.changed.dispose();
  }
}

function filled(line: Line, node: Exclude<Node, { kind: 'folder' }>, id: string, collapsible: TreeItemCollapsibleState): TreeItem {
  const item = new TreeItem(line.label, collapsible);
  // A stable id, so that expanded items stay expanded when the tree is read again.
  item.id = `${node.home.folder.uri.toString()} ${id}`;
  item.description = line.description;
  item.tooltip = line.tooltip;
  item.iconPath = new ThemeIcon(line.icon, line.color === undefined ? undefined : new ThemeColor(line.color));
  item.contextValue = line.context;
  item.command = { command: 'planwatch.ui.open', title: 'Open File', arguments: [node] };
  return item;
}
