/** The files of plans and steps: where they are, and how they are opened. */

import { Uri, window } from 'vscode';
import { dirname } from 'node:path';

import type { Home } from './server.ts';

/** The file of a plan or a step. Paths in answers begin with the name of the plans directory. */
export function fileOf(home: Home, path: string): Uri {
  return Uri.joinPath(Uri.file(dirname(home.status.plans_dir)), path);
}

/** The command `vscode.open` would look for the file on the machine of the window, which need not be that of the plans. */
export async function openFile(uri: Uri): Promise<void> {
  await window.showTextDocument(uri);
}
