import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../../core/errors.ts';
import type { Reply, Routes } from '../../reporters/listen/http.ts';
import type { AdminLinks } from '../config/types.ts';
import { shippedFolder } from '../installation.ts';
import type { StatusReport } from '../report.ts';
import { type Alike, alike } from '../verdict/alike.ts';

/** The files of the page, as scripts/build.mjs writes them. */
const files: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/page.css': ['page.css', 'text/css; charset=utf-8'],
  '/icon.svg': ['icon.svg', 'image/svg+xml'],
};

/**
 * The content security policy: scripts, styles and data come only from this listener, nothing is inline, and no text becomes
 * markup. There is no Trusted Types policy.
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

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (character) => entities[character]!);

/** The maximum number of rows of problems on the page without its script. */
const mostItems = 50;

/** The verdict as markup, for readers without JavaScript, and until the script has its first data. */
function verdictMarkup({ verdict }: StatusReport): string {
  const item = ({ problem, others }: Alike) => {
    const { severity, what, since, fix, firstSteps, runbook } = problem;
    return [
      `<li><strong>${severity}</strong> ${escaped(what)}, since <time>${escaped(since)}</time>. `,
      escaped(fix ? `Fix: ${fix}` : firstSteps),
      runbook ? ` <a href="runbooks/${runbook}.md">${runbook}</a>` : '',
      others.length > 0 ? ` ${others.length} more of this kind.` : '',
      '</li>',
    ].join('');
  };
  const causes = alike(verdict.problems.filter(({ causedBy }) => causedBy === undefined));
  const items = causes.slice(0, mostItems).map(item).join('');
  const rest = causes.length - mostItems;
  return [
    `<h1>${escaped(verdict.sentence)}</h1>`,
    items && `<ul class="plainlist">${items}</ul>`,
    rest > 0 ? `<p class="note">${rest} more are in svc-agent status --json.</p>` : '',
    '<p class="note" id="loading">Loading the details; they need JavaScript.</p>',
  ].join('');
}

const linkNames = { grafana: 'Grafana', prometheus: 'Prometheus', alertmanager: 'Alertmanager' } as const;

const linksMarkup = (links: AdminLinks): string =>
  Object.entries(linkNames)
    .map(([key, name]) => {
      const address = links[key as keyof AdminLinks];
      return address ? `<a href="${escaped(address)}" rel="noreferrer">${name}</a>` : '';
    })
    .join('');

/** The document with the verdict and the links in their places. */
async function sendDocument(reply: Reply, report: StatusReport, links: AdminLinks): Promise<void> {
  const document = await readFile(join(shippedFolder('dist/page'), 'index.html'), 'utf8');
  const filled = document
    .replace('<!-- verdict -->', () => verdictMarkup(report))
    .replace('<!-- links -->', () => linksMarkup(links));
  reply.send(200, filled, { ...headers('text/html; charset=utf-8'), 'cache-control': 'no-store' });
}

/** The routes of the status page, which contains the present verdict, and of the runbooks that it shows. */
export function pageRoutes(report: () => StatusReport, links: AdminLinks): Routes {
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
  const document: Routes[string] = { handle: (_request, reply) => sendDocument(reply, report(), links) };
  return { '/': document, ...Object.fromEntries(page), '/runbooks/*': runbook };
}
