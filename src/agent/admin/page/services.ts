import { reasonOf } from '../../verdict.ts';
import type { ProbeStatus, StatusReport } from '../report.ts';
import type { Data } from './data.ts';
import { type Child, h, table } from './dom.ts';
import { ago, bytes, count, moment, percent, seconds, span } from './format.ts';
import { type Frame, facts, folded, meter, note, pill, section, type Tone } from './parts.ts';
import { availability, type Mark, plot, strip, timeLine } from './plots.ts';
import { openRunbook } from './runbook.ts';

const subjectOf = ({ name }: ProbeStatus) => name.slice(name.indexOf('/') + 1);
const of = ({ probes }: StatusReport, kind: ProbeStatus['kind']) =>
  probes.filter((probe) => probe.kind === kind);

/** The state of a probe's target, in one word. */
function stateOf({ state, last, flapping }: ProbeStatus): [Tone, string] {
  if (!last) return ['quiet', 'not checked yet'];
  if (state === 'down') return ['bad', 'down'];
  if (!last.ok) return ['warn', 'failing'];
  return flapping ? ['warn', 'flapping'] : ['good', 'up'];
}

const pillOf = (probe: ProbeStatus) => pill(...stateOf(probe));

const shareOf = (name: string, { plotted }: Data, { shown }: Frame) => {
  const share = availability(name, plotted, shown);
  return h('span', { class: 'number' }, share === undefined ? '–' : percent(share));
};

const axis = ({ shownText }: Frame) =>
  h('div', { class: 'axis', 'aria-hidden': 'true' }, h('span', {}, `${shownText} ago`), h('span', {}, 'now'));

/** Each role with its availability, its health and its page. */
export function roles(data: Data, report: StatusReport, frame: Frame): Child {
  const health = new Map(of(report, 'health').map((probe) => [subjectOf(probe), probe]));
  const pages = new Map(report.scrapes.map((scrape) => [scrape.service, scrape]));
  const datagrams = new Map(report.statsd.map((one) => [one.service, one]));
  const names = new Set([...report.roles, ...health.keys(), ...pages.keys(), ...datagrams.keys()]);
  if (names.size === 0) return undefined;
  const rows = [...names].map((name) => {
    const probe = health.get(name);
    const page = pages.get(name);
    const received = datagrams.get(name);
    const series = probe ? `${probe.name}/up` : `scrape/${name}/up`;
    const seen: [Tone, string] = page
      ? page.up
        ? ['good', 'up']
        : page.lastFailure
          ? ['bad', 'down']
          : ['quiet', 'not scraped yet']
      : ['quiet', 'not checked'];
    const [tone, state] = probe ? stateOf(probe) : seen;
    const restarts = report.restarts[name] ?? 0;
    return h(
      'li',
      { key: name, class: 'target' },
      h(
        'div',
        { class: 'line' },
        h('h3', {}, name),
        pill(tone, state),
        probe?.since &&
          h('span', { class: 'muted' }, `for ${span((frame.nowMs - Date.parse(probe.since)) / 1e3)}`),
        h('span', { class: 'push' }, shareOf(series, data, frame)),
      ),
      strip(series, `Availability of ${name}`, data.plotted, frame.shown),
      h(
        'div',
        { class: 'line small' },
        probe?.last &&
          h(
            'span',
            {},
            probe.last.ok ? `answers in ${seconds(probe.last.durationMs / 1e3)}` : reasonOf(probe),
          ),
        page &&
          h(
            'span',
            {},
            page.up
              ? `${count(page.page?.series ?? 0)} series scraped`
              : `no metrics: ${page.lastFailure?.what ?? 'no page yet'}`,
          ),
        received && h('span', {}, `${count(received.datagrams)} datagrams`),
        restarts > 0 && h('span', {}, `${count(restarts)} ${restarts === 1 ? 'restart' : 'restarts'} seen`),
      ),
    );
  });
  return section({ id: 'roles', title: 'Roles', aside: axis(frame) }, h('ul', { class: 'targets' }, rows));
}

interface Check {
  check: string;
  holds: boolean | 'unknown';
  found: string;
  severity: 'data_at_risk' | 'recovery_weak' | 'advice';
  accepted?: string;
  why?: string;
  set?: string;
  restart?: boolean;
}

const severityText = {
  data_at_risk: 'data at risk',
  recovery_weak: 'recovery is weak',
  advice: 'advice',
} as const;
const severityTone = { data_at_risk: 'bad', recovery_weak: 'warn', advice: 'quiet' } as const;

function checkOf({ check, found, severity, why, set, restart }: Check): HTMLElement {
  return h(
    'li',
    { key: check, class: 'check' },
    h(
      'div',
      { class: 'line' },
      pill(severityTone[severity], severityText[severity]),
      h('strong', {}, check.replaceAll('_', ' ')),
      h('span', { class: 'muted' }, found),
    ),
    why && h('p', {}, why),
    set &&
      h(
        'p',
        { class: 'fix' },
        h('span', { class: 'muted' }, 'Set '),
        h('code', {}, set),
        restart === true && h('span', { class: 'muted' }, ' (needs a restart)'),
      ),
  );
}

function posture(name: string, checks: readonly Check[]): Child {
  const rank = { data_at_risk: 0, recovery_weak: 1, advice: 2 } as const;
  const open = checks.filter(({ holds, accepted }) => holds === false && accepted === undefined);
  open.sort((a, b) => rank[a.severity] - rank[b.severity]);
  const accepted = checks.filter((check) => check.holds === false && check.accepted !== undefined);
  const good = checks.filter(({ holds }) => holds === true);
  const unknown = checks.filter(({ holds }) => holds === 'unknown');
  const rest: [string, readonly Check[], (check: Check) => string][] = [
    ['hold', good, ({ found }) => found],
    ['are not known', unknown, ({ found }) => found],
    ['fail and are accepted', accepted, ({ found, accepted: reason }) => `${found} (accepted: ${reason})`],
  ];
  return [
    h('ul', { class: 'checks' }, open.map(checkOf)),
    rest
      .filter(([, all]) => all.length > 0)
      .map(([what, all, text]) =>
        h(
          'details',
          { key: `${name} ${what}`, class: 'more' },
          h(
            'summary',
            {},
            `${all.length} ${all.length === 1 ? 'check' : 'checks'} ${all.length === 1 ? what.replace('hold', 'holds').replace('are', 'is').replace('fail and are', 'fails and is') : what}`,
          ),
          h(
            'ul',
            { class: 'plainlist' },
            all.map((check) =>
              h(
                'li',
                {},
                h('strong', {}, check.check.replaceAll('_', ' ')),
                ' ',
                h('span', { class: 'muted' }, text(check)),
              ),
            ),
          ),
        ),
      ),
  ];
}

/** Each database with its latency and its posture. */
export function stores(data: Data, report: StatusReport, frame: Frame): Child {
  const probes = of(report, 'store');
  if (probes.length === 0) return undefined;
  const items = probes.map((probe) => {
    const details = (probe.last?.details ?? {}) as Record<string, unknown>;
    const open = Object.values((details.connections ?? {}) as Record<string, number>).reduce(
      (sum, n) => sum + n,
      0,
    );
    const most = Number(details.connectionsMax);
    const { name } = probe;
    return h(
      'li',
      { key: name, class: 'target store' },
      h(
        'div',
        { class: 'line' },
        h('h3', {}, subjectOf(probe)),
        pillOf(probe),
        probe.since &&
          h('span', { class: 'muted' }, `for ${span((frame.nowMs - Date.parse(probe.since)) / 1e3)}`),
        h('span', { class: 'push' }, shareOf(`${name}/up`, data, frame)),
      ),
      strip(`${name}/up`, `Availability of ${subjectOf(probe)}`, data.plotted, frame.shown),
      probe.last && !probe.last.ok && h('p', { class: 'reason' }, reasonOf(probe)),
      facts(
        ['Address', h('code', {}, probe.target)],
        details.server !== undefined && ['Server', String(details.server)],
        details.schema !== undefined && details.schema !== null && ['Schema', String(details.schema)],
        most > 0 && [
          'Connections',
          meter(open / most, `${count(open)} of ${count(most)}`, open / most >= 0.9 ? 'bad' : 'quiet'),
        ],
      ),
      plot(
        {
          id: `${name}/seconds`,
          title: 'Check duration',
          text: seconds,
          least: 0.01,
          lines: [{ series: `${name}/seconds`, label: 'duration', colour: '--c1' }],
        },
        data.plotted,
        frame.shown,
      ),
      posture(name, (details.checks ?? []) as Check[]),
    );
  });
  return section(
    { id: 'stores', title: 'Stores', aside: axis(frame), wide: probes.length > 1 },
    h('ul', { class: `targets${probes.length > 1 ? ' columns' : ''}` }, items),
  );
}

interface DomainDetails {
  activeCluster?: string;
  clusters?: readonly string[];
  failover?: { ready?: boolean; why?: string };
}

const shownClusters = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6'];
const mostDomains = 15;

/** Clusters, the lag between them, and the domains with their failovers. */
export function domains(data: Data, report: StatusReport, frame: Frame): Child {
  const clusters = of(report, 'cluster');
  const probes = of(report, 'domain');
  const replication = of(report, 'replication');
  if (clusters.length + probes.length + replication.length === 0) return undefined;
  const known = new Map(report.domains.map((domain) => [domain.domain, domain]));
  const marks = [
    ...report.domains.flatMap(({ domain, lastFailover, activeCluster }): Mark[] =>
      lastFailover
        ? [
            {
              atMs: Date.parse(lastFailover),
              kind: 'failover',
              text: `${domain} failed over to ${activeCluster ?? 'another cluster'}`,
            },
          ]
        : [],
    ),
    ...data.events
      .filter(({ kind }) => kind === 'failover')
      .map(({ at, text }): Mark => ({ atMs: Date.parse(at), kind: 'failover', text })),
  ];
  const problemsFirst = [...probes].sort((a, b) => Number(a.last?.ok ?? true) - Number(b.last?.ok ?? true));
  const rows = problemsFirst.map((probe) => {
    const { activeCluster, clusters: spanned, failover } = (probe.last?.details ?? {}) as DomainDetails;
    const domain = known.get(subjectOf(probe));
    const ready: [Tone, string] =
      failover === undefined
        ? ['quiet', 'local']
        : failover.ready === undefined
          ? ['quiet', 'not known']
          : failover.ready
            ? ['good', 'ready']
            : ['warn', 'not ready'];
    return {
      key: probe.name,
      cells: [
        h('strong', {}, subjectOf(probe)),
        probe.last?.ok === false
          ? [pill('bad', 'fault'), h('div', { class: 'reason' }, reasonOf(probe))]
          : (activeCluster ?? domain?.activeCluster ?? '–'),
        (spanned ?? []).join(', ') || '–',
        [
          pill(...ready),
          failover?.ready !== true && failover?.why && h('div', { class: 'muted small' }, failover.why),
        ],
        [
          count(domain?.failovers ?? 0),
          domain?.lastFailover &&
            h('div', { class: 'muted small' }, `last ${ago(domain.lastFailover, frame.nowMs)}`),
        ],
      ],
    };
  });
  const head = ['Domain', 'Active in', 'Clusters', 'Failover', 'Failovers'];
  const lines = report.replication.slice(0, shownClusters.length).map(({ source, target }, i) => ({
    series: `replication/${source} to ${target}`,
    label: `${source} → ${target}`,
    colour: shownClusters[i]!,
  }));
  return section(
    { id: 'domains', title: 'Domains and clusters', aside: axis(frame), wide: probes.length > 8 },
    clusters.length > 0 &&
      h(
        'ul',
        { class: 'targets' },
        clusters.map((probe) =>
          h(
            'li',
            { key: probe.name, class: 'target' },
            h(
              'div',
              { class: 'line' },
              h('h3', {}, subjectOf(probe)),
              pillOf(probe),
              h('span', { class: 'muted' }, 'cluster'),
              h('span', { class: 'push' }, shareOf(`${probe.name}/up`, data, frame)),
            ),
            strip(`${probe.name}/up`, `Availability of ${subjectOf(probe)}`, data.plotted, frame.shown),
            probe.last && !probe.last.ok && h('p', { class: 'reason' }, reasonOf(probe)),
          ),
        ),
      ),
    lines.length > 0
      ? plot(
          { id: 'replication', title: 'Replication lag', text: seconds, least: 5, lines },
          data.plotted,
          frame.shown,
        )
      : replication.map((probe) => note('Replication: ', reasonOf(probe) || 'not checked yet')),
    probes.length > 0 && [
      h(
        'div',
        { class: 'timeline' },
        h('span', { class: 'muted small' }, 'Failovers'),
        timeLine('Failovers', marks, data.plotted, frame.shown),
      ),
      table('Domains', head, rows.slice(0, mostDomains)),
      rows.length > mostDomains &&
        h(
          'details',
          { key: 'more-domains', class: 'more' },
          h('summary', {}, `${rows.length - mostDomains} more domains`),
          table('More domains', head, rows.slice(mostDomains)),
        ),
    ],
  );
}

interface Chain {
  recoveryPoint: string;
  links: readonly { backup: string; type: string; what: string; to: string }[];
}
interface Drill {
  procedure: string;
  endMs: number;
  durationMs: number;
}

const tightest = (values: readonly number[]) => (values.length > 0 ? Math.min(...values) : undefined);

function chainOf(name: string, { links }: Chain, nowMs: number): HTMLElement {
  const steps = links.map(({ backup, type, what, to }) =>
    h('li', {}, h('strong', {}, backup), ` ${type}: ${what}, to ${moment(to, nowMs)}`),
  );
  return h(
    'details',
    { key: `chain ${name}`, class: 'more' },
    h('summary', {}, `${links.length} ${links.length === 1 ? 'step' : 'steps'}`),
    h('ol', { class: 'plainlist' }, steps),
  );
}

/** Objectives against evidence: what can be recovered, and each backup. */
export function backups(_data: Data, report: StatusReport, { nowMs }: Frame): Child {
  const recovery = of(report, 'recovery');
  const probes = new Map(of(report, 'backup').map((probe) => [subjectOf(probe), probe]));
  const archives = of(report, 'archive');
  if (recovery.length + report.backups.length + archives.length === 0) return undefined;
  const recoveryRows = recovery.map((probe) => {
    const [store, database] = subjectOf(probe).split('/');
    const { chain, drill } = (probe.last?.details ?? {}) as { chain?: Chain; drill?: Drill };
    const own = report.backups.filter(
      (one) =>
        one.store === store &&
        (one.database === undefined || one.database === database) &&
        one.type !== 'config',
    );
    const rpo = tightest(own.map(({ rpoSeconds }) => rpoSeconds));
    const rto = tightest(own.map(({ rtoSeconds }) => rtoSeconds));
    const state: [Tone, string] = !probe.last
      ? ['quiet', 'not checked yet']
      : probe.last.ok
        ? ['good', 'ready']
        : ['bad', 'not ready'];
    const lossSeconds = chain && (nowMs - Date.parse(chain.recoveryPoint)) / 1e3;
    const drillSeconds = drill && drill.durationMs / 1e3;
    const against = (evidence: number | undefined, objective: number | undefined, none: string) =>
      evidence === undefined || objective === undefined
        ? [none, objective !== undefined && h('div', { class: 'muted small' }, `at most ${span(objective)}`)]
        : meter(
            evidence / objective,
            `${span(evidence)} of ${span(objective)}`,
            evidence > objective ? 'bad' : 'good',
          );
    return {
      key: probe.name,
      cells: [
        [h('strong', {}, subjectOf(probe)), probe.last && h('div', { class: 'muted small' }, probe.last.msg)],
        pill(...state),
        against(lossSeconds, rpo, 'no verified backup'),
        [
          against(drillSeconds, rto, 'no drill yet'),
          drill &&
            h('div', { class: 'muted small' }, `drill ${ago(new Date(drill.endMs).toISOString(), nowMs)}`),
        ],
        chain ? chainOf(probe.name, chain, nowMs) : '–',
      ],
    };
  });
  const backupRows = report.backups.map((one) => {
    const probe = probes.get(one.backup);
    const state: [Tone, string] = !probe?.last
      ? ['quiet', 'not checked yet']
      : probe.last.ok
        ? ['good', 'good']
        : ['bad', (probe.last.reason ?? 'failed').replaceAll('_', ' ')];
    const age = one.recoveryPoint ?? one.lastSuccess;
    const ageSeconds = age === undefined ? undefined : (nowMs - Date.parse(age)) / 1e3;
    return {
      key: one.backup,
      cells: [
        [
          h('strong', {}, one.backup),
          h('div', { class: 'muted small' }, [one.type, one.store, one.database].filter(Boolean).join(' · ')),
        ],
        [pill(...state), probe?.last && !probe.last.ok && h('div', { class: 'reason' }, probe.last.msg)],
        ageSeconds === undefined
          ? 'none'
          : meter(
              ageSeconds / one.rpoSeconds,
              `${span(ageSeconds)} of ${span(one.rpoSeconds)}`,
              ageSeconds > one.rpoSeconds ? 'bad' : 'good',
            ),
        one.integrityOk === undefined
          ? 'not verified'
          : one.integrityOk
            ? pill('good', 'verified')
            : pill('bad', 'corrupt'),
        [
          one.bytes === undefined ? '–' : bytes(one.bytes),
          one.durationSeconds !== undefined &&
            h('div', { class: 'muted small' }, `in ${seconds(one.durationSeconds)}`),
        ],
        one.offsite === undefined ? '–' : ago(one.offsite, nowMs),
        one.retentionKept === undefined
          ? '–'
          : one.retentionKept
            ? pill('good', 'kept')
            : pill('warn', 'broken'),
      ],
    };
  });
  const guide = (name: string, text: string) =>
    h('button', { type: 'button', class: 'plain', click: () => void openRunbook(`recovery/${name}`) }, text);
  return section(
    {
      id: 'backups',
      title: 'Backups and recovery',
      wide: true,
      aside: h(
        'div',
        { class: 'links' },
        guide('database-corruption', 'Recover a database'),
        guide('datacenter-failure', 'Lose a datacenter'),
      ),
    },
    recoveryRows.length > 0 &&
      table(
        'Recovery readiness',
        ['Database', 'Recovery', 'Loss against objective', 'Restore time against objective', 'Evidence'],
        recoveryRows,
      ),
    backupRows.length > 0 &&
      table(
        'Backups',
        ['Backup', 'State', 'Age against objective', 'Integrity', 'Size', 'Off-site', 'Retention'],
        backupRows,
      ),
    archives.length > 0 &&
      h(
        'ul',
        { class: 'targets' },
        folded(
          'archives',
          6,
          archives.map((probe) =>
            h(
              'li',
              { key: probe.name, class: 'target' },
              h(
                'div',
                { class: 'line' },
                h('h3', {}, `Archive ${subjectOf(probe)}`),
                pillOf(probe),
                h('span', { class: 'muted' }, probe.last?.ok ? probe.last.msg : ''),
              ),
              probe.last && !probe.last.ok && h('p', { class: 'reason' }, reasonOf(probe)),
            ),
          ),
          (items) => h('div', {}, ...items),
        ),
      ),
  );
}
