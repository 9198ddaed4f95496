import { expect, it } from 'vitest';
import { countsText, showLive } from '../../../src/agent/cli/demo/text.ts';
import { plainScreen } from '../../../src/agent/cli/io.ts';
import { manualClock } from '../../clock.ts';
import { serving } from '../../serving.ts';

const page = `# TYPE svc_log_entries_total counter
svc_log_entries_total{level="info",svc_service="history"} 40
svc_log_entries_total{level="warn",svc_service="history"} 2
svc_log_bytes_total{svc_service="history"} 12600
svc_log_persistence_errors_total{svc_service="history"} 3
svc_log_lines_dropped_total{reason="too_long",svc_service="history"} 1
svc_role_up{svc_service="frontend"} 1
svc_role_up{svc_service="history"} 0
svc_store_up{database="persistence",store="main"} 1
svc_store_up{database="visibility",store="main"} 1
`;
const line = 'up: 1/2 roles 2/2 stores, 42 log entries, 3 persistence errors';

it.each([
  { of: 'a page', text: page, shown: line },
  {
    of: 'an empty page',
    text: '',
    shown: 'up: nothing yet, 0 log entries, 0 persistence errors',
  },
])('$of becomes a line for people', ({ text, shown }) => {
  expect(countsText(text)).toBe(shown);
});

it('the line is rewritten as the agent’s page changes, until it is ended', async () => {
  const port = await serving((_, response) => response.end(page));
  const clock = manualClock();
  const written: string[] = [];
  const end = await new Promise<() => void>((resolve) => {
    const stop = showLive(
      `http://127.0.0.1:${port}/metrics`,
      (text) => {
        written.push(text);
        resolve(stop);
      },
      plainScreen,
      clock,
    );
    clock.advance(2000);
  });
  expect(written).toEqual([`\r\u001b[K${line}`]);
  end();
});
