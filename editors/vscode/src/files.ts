/** The files of plans and steps: where they are, and how they are opened. */

import { Uri, commands } from 'vscode';
import { dirname } from 'node:path';

import type { Home } from './server.ts';

/** The file of a plan or a step. Paths in answers begin with the name of the plans directory. */
export function fileOf(home: Home, path: string): Uri {
  return Uri.joinPath(Uri.file(dirname(home.plansDir)), path);
}

export async function openFile(uri: Uri): Promise<void> {
  await commands.executeCommand('vscode.open', uri);
}
