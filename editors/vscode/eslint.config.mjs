import js from '@eslint/js';
import typescript from 'typescript-eslint';

/** Files that unit tests load in plain Node, where the module `vscode` does not exist. */
const WITHOUT_EDITOR = ['src/protocol.ts', 'src/model.ts', 'src/program.ts', 'src/verbs.ts', 'test/**/*.ts'];

export default typescript.config(
  { ignores: ['out/', 'node_modules/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [typescript.configs.strictTypeChecked, typescript.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      eqeqeq: 'error',
      'max-lines': ['error', 600],
      'max-lines-per-function': ['error', 80],
      'no-console': 'error',
    },
  },
  {
    files: WITHOUT_EDITOR,
    rules: { 'no-restricted-imports': ['error', { patterns: ['vscode', 'vscode-languageclient*'] }] },
  },
  {
    files: ['test/**/*.ts'],
    // `test` returns a promise that the runner itself awaits.
    rules: { '@typescript-eslint/no-floating-promises': 'off', 'max-lines-per-function': 'off' },
  },
  { files: ['*.mjs'], languageOptions: { globals: { console: 'readonly', process: 'readonly' } } },
);
