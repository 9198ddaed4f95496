import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../core/errors.ts';
import type { Reply, Routes } from '../../reporters/listen/http.ts';
import { shippedFolder } from '../installation.ts';

/** The files of the page, as scripts/build.mjs writes them. */
const files: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/page.css': ['page.css', 'text/css; charset=utf-8'],
  '/icon.svg': ['icon.svg', 'image/svg+xml'],
};

/**
 * Scripts, styles and data come from this listener alone, nothing is inline, and no text becomes markup: the page has
 * no Trusted Types policy.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const headers = (type: string) => ({
  'content-type': type,
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
});

async function sendFile(reply: Reply, folder: string, file: string, type: string): Promise<void> {
  try {
    reply.send(200, await readFile(join(shippedFolder(folder), file)), headers(type));
  } catch (thrown) {
    if (systemCode(thrown) !== 'ENOENT') throw thrown;
    reply.send(404, `No file ${file}.\n`);
  }
}

/** The status page and the runbooks that it shows. Nothing of it depends on the agent's data. */
export function pageRoutes(): Routes {
  const page = Object.entries(files).map(([path, [file, type]]): [string, Routes[string]] => [
    path,
    { handle: (_request, reply) => sendFile(reply, 'dist/page', file, type) },
  ]);
  const runbook: Routes[string] = {
    async handle({ url }, reply) {
      const [, file] = /^\/runbooks\/((?:recovery\/)?[A-Za-z0-9-]{1,64}\.md)$/.exec(url.pathname) ?? [];
      if (file) await sendFile(reply, 'runbooks', file, 'text/markdown; charset=utf-8');
      else reply.send(404, 'No such runbook.\n');
    },
  };
  return { ...Object.fromEntries(page), '/runbooks/*': runbook };
}
