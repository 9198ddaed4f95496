import { fires, type Plan, type Series, scenes, series } from './case.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const at = 'cluster="dc1", instance="a"';
const fatal = series('svc_log_entries_total', `${role}, level="fatal", logger="shard"`);
const silence = (bytes: string): Series => ({
  [`svc_log_bytes_total{${role}}`]: bytes,
  [`svc_role_up{${role}}`]: '1x200',
});
const probe = (values: string): Series => ({
  'svc_probe_last_run_timestamp_seconds{probe="store/main"}': values,
  'svc_probe_skipped_total{probe="store/main", reason="overlap"}': '0+1x40',
  'svc_probe_skipped_total{probe="store/main", reason="backlog"}': '10x40',
});
const logFault = series('svc_incident', 'cause="log_deleted", subject="/var/log/svc/history.log"');
const drops = series('svc_agent_dropped_total', 'component="scrape", reason="invalid_line"');
const failures = series('svc_agent_report_failures_total', 'reason="refused"');
const skipped = series('svc_log_skipped_bytes_total', `${role}, reason="vanished"`);

export const agentPlans: readonly Plan[] = [
  {
    alert: 'SvcFatalLogEntry',
    at: 20,
    ...scenes(fatal, { bad: '3x15 5x20', good: '3x40', edge: '0x40', reset: '9x15 0x20' }),
    labels: history,
    instance: true,
    value: '2',
    silent: {
      'an old total is no news': {
        [`svc_log_entries_total{${at}, ${role}, level="fatal", logger="shard"}`]: '7x40',
        [`svc_log_bytes_total{${at}, ${role}}`]: '0+900x40',
      },
      'an agent that is new brings its old total along': {
        [`svc_log_entries_total{${at}, ${role}, level="fatal", logger="shard"}`]: '_x15 7x20',
        [`svc_log_bytes_total{${at}, ${role}}`]: '_x15 90000+900x40',
      },
      'errors are not fatal': {
        [`svc_log_entries_total{${at}, ${role}, level="error", logger="shard"}`]: '0+5x40',
      },
    },
    more: [
      fires('the first fatal entry of a logger, which brings its series along', '1', {
        [`svc_log_entries_total{${at}, ${role}, level="fatal", logger="shard"}`]: '_x15 1x20',
        [`svc_log_bytes_total{${at}, ${role}}`]: '0+900x40',
      }),
    ],
  },
  {
    alert: 'SvcLogSilent',
    at: 90,
    bad: silence('5000x120'),
    good: silence('0+900x120'),
    edge: silence('0+900x20 18000x200'),
    reset: silence('5000x60 5900x100'),
    labels: history,
    instance: true,
    value: '0',
    silent: {
      'a role that is down writes nothing': {
        [`svc_log_bytes_total{${at}, ${role}}`]: '5000x120',
        [`svc_role_up{${at}, ${role}}`]: '0x120',
        [`svc_role_scrape_up{${at}, ${role}}`]: '1x120',
      },
      'a role without health check and scrape': { [`svc_log_bytes_total{${at}, ${role}}`]: '5000x120' },
    },
    more: [
      fires('a pattern that matches nothing, of a role that is only scraped', '0', {
        [`svc_log_bytes_total{${at}, ${role}}`]: '0x120',
        [`svc_role_scrape_up{${at}, ${role}}`]: '1x120',
      }),
    ],
  },
  {
    alert: 'SvcLogFault',
    at: 20,
    ...scenes(logFault, { bad: '_x5 1x40', good: '_x40', edge: '_x17 1x40', reset: '_x12 1x3 stale 1x40' }),
    labels: { cause: 'log_deleted', subject: '/var/log/svc/history.log' },
    instance: true,
    value: '1',
    silent: {
      'a log that does not grow may have nothing to say': {
        [`svc_incident{${at}, cause="log_silent", subject="history"}`]: '1x40',
      },
    },
  },
  {
    alert: 'SvcLogLag',
    at: 20,
    bad: { [`svc_log_lag_bytes{${role}}`]: '134217728x40' },
    good: { [`svc_log_lag_bytes{${role}}`]: '4096x40' },
    edge: { [`svc_log_lag_bytes{${role}}`]: '67108864x40' },
    reset: { [`svc_log_lag_bytes{${role}}`]: '134217728x13 0 134217728x40' },
    labels: history,
    instance: true,
    value: '128Mi',
  },
  {
    alert: 'SvcLogBytesLost',
    at: 20,
    ...scenes(skipped, { bad: '0x14 2048x20', good: '2048x40', edge: '0x40', reset: '2048x15 0x20' }),
    labels: { ...history, reason: 'vanished' },
    instance: true,
    value: '2ki',
    silent: {
      'what the start rule passes over is no loss': {
        [`svc_log_skipped_bytes_total{${at}, ${role}, reason="start_at_end"}`]: '0x14 2048x20',
      },
    },
  },
  {
    alert: 'SvcRoleReporterErrors',
    at: 40,
    bad: { [`svc_role_reporter_errors_total{${role}}`]: '0+1x60' },
    good: { [`svc_role_reporter_errors_total{${role}}`]: '7x60' },
    edge: { [`svc_role_reporter_errors_total{${role}}`]: '0x60' },
    reset: { [`svc_role_reporter_errors_total{${role}}`]: '9x15 0x60' },
    labels: history,
    instance: true,
    value: '15',
  },
  {
    alert: 'SvcAgentDown',
    at: 10,
    bad: { 'up{job="svc-agent"}': '1 0x20' },
    good: { 'up{job="svc-agent"}': '1x20' },
    edge: { 'up{job="svc-agent"}': '1x5 0x20' },
    reset: { 'up{job="svc-agent"}': '1 0x3 1 0x20' },
    labels: { job: 'svc-agent' },
    instance: true,
    value: '0',
    silent: {
      'a role is no agent': { [`up{job="worker", ${at}}`]: '0x20' },
    },
  },
  {
    alert: 'SvcProbeStale',
    at: 20,
    bad: probe('0x2 stale'),
    good: probe('0+60x40'),
    edge: probe('0+60x11 stale'),
    reset: probe('0x2 stale _x10 780+60x40'),
    labels: { probe: 'store/main' },
    instance: true,
    value: '5',
    silent: {
      'a probe that was taken out of the configuration': {
        [`svc_probe_last_run_timestamp_seconds{${at}, probe="store/main"}`]: '0x2 stale',
        [`svc_probe_skipped_total{${at}, probe="store/main", reason="overlap"}`]: '0x2 stale',
      },
    },
    more: [
      fires('a probe with results beside one without, on another agent', '0', {
        'svc_probe_last_run_timestamp_seconds{cluster="dc1", instance="b", probe="store/main"}': '0+60x40',
        'svc_probe_skipped_total{cluster="dc1", instance="b", probe="store/main", reason="overlap"}': '0x40',
        [`svc_probe_skipped_total{${at}, probe="store/main", reason="overlap"}`]: '7x40',
      }),
    ],
  },
  {
    alert: 'SvcCertificateExpiring',
    at: 75,
    bad: { 'svc_probe_tls_not_after_timestamp_seconds{probe="health/frontend"}': '604800+60x99' },
    good: { 'svc_probe_tls_not_after_timestamp_seconds{probe="health/frontend"}': '9999999x99' },
    edge: { 'svc_probe_tls_not_after_timestamp_seconds{probe="health/frontend"}': '1209600+60x99' },
    reset: { 'svc_probe_tls_not_after_timestamp_seconds{probe="health/frontend"}': '90900x60 9999999x99' },
    labels: { probe: 'health/frontend' },
    value: '7d 0h 0m 0s',
  },
  {
    alert: 'SvcAgentDropping',
    at: 30,
    ...scenes(drops, { bad: '0+30x60', good: '70x60', edge: '0x60', reset: '900x20 0x60' }),
    labels: { component: 'scrape', reason: 'invalid_line' },
    instance: true,
    value: '0.500',
    silent: {
      'what the cardinality rules take away is no loss': {
        [`svc_agent_dropped_total{${at}, component="registry", reason="forbidden_tag"}`]: '0+30x60',
      },
      'a role that does not answer gave nothing that could be lost': {
        [`svc_agent_dropped_total{${at}, component="scrape", reason="failed"}`]: '0+4x60',
      },
    },
  },
  {
    alert: 'SvcAgentStateDegraded',
    at: 15,
    bad: { svc_agent_state_degraded: '0 1x40' },
    good: { svc_agent_state_degraded: '0x40' },
    edge: { svc_agent_state_degraded: '0x10 1x40' },
    reset: { svc_agent_state_degraded: '0x5 1x3 0 1x40' },
    labels: {},
    instance: true,
    value: '1',
  },
  {
    alert: 'SvcAgentReloadFailed',
    at: 15,
    bad: { svc_agent_config_last_reload_successful: '1 0x40' },
    good: { svc_agent_config_last_reload_successful: '1x40' },
    edge: { svc_agent_config_last_reload_successful: '1x10 0x40' },
    reset: { svc_agent_config_last_reload_successful: '1x5 0x3 1 0x40' },
    labels: {},
    instance: true,
    value: '0',
  },
  {
    alert: 'SvcMaintenance',
    at: 15,
    bad: { svc_maintenance: '0x10 1x40' },
    good: { svc_maintenance: '0x40' },
    edge: { svc_maintenance: '0x15 1x40' },
    reset: { svc_maintenance: '1x7 0x40' },
    labels: {},
    agentsDiffer: 'fires',
    value: '1',
  },
  {
    alert: 'SvcAgentReportFailing',
    at: 30,
    ...scenes(failures, { bad: '0+30x60', good: '70x60', edge: '0x60', reset: '900x20 0x60' }),
    labels: { reason: 'refused' },
    instance: true,
    value: '0.500',
  },
];

const incident = (cause: string, subject: string, values: string, where = ''): Series => ({
  [`svc_incident{${where}cause="${cause}", subject="${subject}"}`]: values,
});
const ofCause = (cause: string, subject: string) => ({ cluster: 'dc1', cause, subject });
const roleUp = (values: string, name = 'history', where = ''): Series => ({
  [`svc_role_up{${where}svc_service="${name}"}`]: values,
});
const storeDown = (values: string) => incident('store_down', 'main/persistence', values);
const here = `${at}, `;
const there = 'cluster="dc1", instance="b", ';

/** The plans for the verdicts of the agents as sources of inhibitions: src/monitoring/alerts/agent.ts. */
export const incidentPlans: readonly Plan[] = [
  {
    alert: 'SvcIncident',
    at: 20,
    bad: incident('reload', '', '1x60'),
    good: incident('reload', '', '0x60'),
    edge: incident('reload', '', '1x12 0x60'),
    reset: incident('reload', '', '1x5 0 1 0x60'),
    labels: { cause: 'reload' },
    agentsDiffer: 'fires',
    value: '1',
    more: [
      fires(
        'a role',
        [
          {
            labels: { cluster: 'dc1', cause: 'role_down', subject: 'history', svc_service: 'history' },
            value: '1',
          },
        ],
        incident('role_down', 'history', '1x60', here),
      ),
      fires(
        'a role of which another instance is up',
        [{ labels: ofCause('role_down', 'history'), value: '1' }],
        {
          ...incident('role_down', 'history', '1x60', here),
          ...roleUp('0x60', 'history', here),
          ...roleUp('1x60', 'history', there),
        },
      ),
      fires(
        'a store that another agent reaches',
        [{ labels: ofCause('store_down', 'main/persistence'), value: '1' }],
        {
          ...incident('store_down', 'main/persistence', '1x60', here),
          [`svc_store_up{${here}store="main", database="persistence"}`]: '0x60',
          [`svc_store_up{${there}store="main", database="persistence"}`]: '1x60',
        },
      ),
      fires(
        'a store that two agents do not reach',
        [
          {
            labels: { ...ofCause('store_down', 'main/persistence'), store: 'main', database: 'persistence' },
            value: '1',
          },
        ],
        {
          ...incident('store_down', 'main/persistence', '1x60', here),
          ...incident('store_down', 'main/persistence', '1x60', there),
        },
      ),
      fires(
        'a store that all agents reach, and that refuses writes',
        [
          {
            labels: { ...ofCause('read_only', 'main/persistence'), store: 'main', database: 'persistence' },
            value: '1',
          },
        ],
        {
          ...incident('read_only', 'main/persistence', '1x60', here),
          [`svc_store_up{${here}store="main", database="persistence"}`]: '1x60',
        },
      ),
      fires(
        'a role that was out six minutes ago',
        [{ labels: { ...ofCause('role_down', 'history'), svc_service: 'history' }, value: '1' }],
        {
          ...incident('role_down', 'history', '1x14 stale', here),
          ...incident('role_down', 'history', '0x14 stale', there),
          ...roleUp('0x14 1x60', 'history', here),
        },
      ),
      fires(
        'a store, which ended seven minutes ago',
        [
          {
            labels: { ...ofCause('store_down', 'main/persistence'), store: 'main', database: 'persistence' },
            value: '1',
          },
        ],
        {
          ...incident('store_down', 'main/persistence', '1x13 stale', here),
          ...incident('store_down', 'main/persistence', '0x13 stale', there),
        },
      ),
      fires(
        'a store that refused the writes of one agent until six minutes ago',
        [
          {
            labels: { ...ofCause('read_only', 'main/persistence'), store: 'main', database: 'persistence' },
            value: '1',
          },
        ],
        {
          ...incident('read_only', 'main/persistence', '1x14 stale', here),
          ...incident('read_only', 'main/persistence', '0x14 stale', there),
        },
      ),
    ],
  },
  {
    alert: 'SvcRoleExplained',
    at: 20,
    bad: { ...roleUp('0x60'), ...storeDown('1x60') },
    good: { ...roleUp('1x60'), ...storeDown('1x60') },
    edge: { ...roleUp('0x60'), ...incident('reload', '', '1x60') },
    reset: { ...roleUp('0x60'), ...storeDown('1x5 0 1 stale') },
    labels: history,
    agentsDiffer: 'fires',
    value: '1',
    silent: {
      'a role that a verdict calls a cause of its own': {
        ...roleUp('0x60', 'history', here),
        ...incident('store_down', 'main/persistence', '1x60', here),
        ...incident('crash_loop', 'history', '1x60', here),
      },
      'a role that another agent calls a cause of its own': {
        ...roleUp('0x60', 'history', here),
        ...incident('store_down', 'main/persistence', '1x60', here),
        ...incident('role_down', 'history', '1x60', there),
      },
      'a role whose own incident ended minutes ago': {
        ...roleUp('1x10 0x5 1x40', 'history', here),
        ...incident('role_down', 'history', '_x11 1x5 stale', here),
      },
      'an incident of an agent that does not see the role': {
        ...roleUp('0x60', 'history', here),
        ...incident('store_down', 'main/persistence', '1x60', there),
      },
      'a slow store explains slowness, and no role that is down': {
        ...roleUp('0x60', 'history', here),
        ...incident('persistence_latency', 'history', '1x60', here),
      },
    },
    more: [
      fires(
        'a role that misses another one, by its page',
        [{ labels: { cluster: 'dc1', svc_service: 'frontend' }, value: '1' }],
        {
          [`svc_role_scrape_up{${at}, svc_service="frontend"}`]: '0x60',
          ...incident('role_down', 'matching', '1x60', here),
        },
      ),
    ],
  },
];
