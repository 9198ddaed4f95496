import { writeFileSync } from 'node:fs';
import type { Page } from 'playwright-core';

/**
 * Writes the content of a tab as WebP, which Chromium makes a third as large as PNG. Playwright's own screenshots do not support
 * WebP.
 */
export async function writePicture(tab: Page, path: string): Promise<void> {
  const session = await tab.context().newCDPSession(tab);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 50 });
  writeFileSync(path, data, 'base64');
  process.stdout.write(`written: ${path}\n`);
}
