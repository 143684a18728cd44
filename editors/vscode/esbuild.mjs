/** Bundles the extension and its libraries into out/extension.cjs. */
import { build } from 'esbuild';

await build({
  entryPoints: ['src/extension.ts'],
  outfile: 'out/extension.cjs',
  bundle: true,
  minify: true,
  platform: 'node',
  format: 'cjs',
  // The oldest editor of `engines` has Node 20.
  target: 'node20',
  // The editor provides it.
  external: ['vscode'],
  logLevel: 'warning',
});
