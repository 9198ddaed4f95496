import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './imports.ts';

/** Run only in commands, in the process that checks the configuration, and in browsers. */
const elsewhere = /^agent\/(?:cli|config|admin\/page)\/|(?:^|\/)block\.ts$/;
/** Names of time zones need the data; a configuration without such a name does not load them. */
const timeZones = ['agent/verdict/planned-work.ts', 'probes/backups/formats/wall-time.ts'];

test('no code of a running agent loads the data of Intl, which stay in memory: 7 MiB for numbers, 3 MiB to compare', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && !elsewhere.test(path) && !timeZones.includes(path),
  );
  const loading = /\bIntl\.|\.toLocale|\.localeCompare\(/;
  const found = files.flatMap((file) =>
    readFileSync(join(root, 'src', file), 'utf8')
      .split('\n')
      .flatMap((line, i) => (loading.test(line) ? [`${file}:${i + 1}: ${line.trim()}`] : [])),
  );
  expect(found).toEqual([]);
});
