// The pictures of README.md and docs/browser.md; see scripts/screenshots.
import { browser as launch, context as signedIn, example, plans } from './lib.mjs';

const to = process.argv[2];
const browser = await launch();
const it = plans(example);
for (const colorScheme of ['light', 'dark']) {
  const { context, page, origin } = await signedIn(browser, it, [], { viewport: { width: 1200, height: 760 }, colorScheme });
  for (const [path, name] of [['/', 'overview'], ['/plan/ledger-migration', 'board'], ['/step/ledger-migration:4', 'step']]) {
    await page.goto(origin + path);
    await page.waitForSelector('html.has-script');
    await page.screenshot({ path: `${to}/browser-${name}-${colorScheme}.png` });
  }
  await context.close();
}
await browser.close();
it.stop();
