import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { otherConfig } from './configs.ts';
import { critical, type Fault, info, warning } from './fault.ts';
import type { Stage } from './stage.ts';

const onFirst = { cluster: 'dc1', instance: 'first' };
const onOther = { cluster: 'dc2', instance: 'other' };

async function takes(stage: Stage, config: object, outcome: 'taken' | 'refused'): Promise<void> {
  const became = await stage.agents.other.configure({ ...config });
  if (became !== outcome) throw new Error(`the configuration was ${became}`);
}

/** Faults of logs, certificates, probes and the agents themselves. */
export const agentFaults: readonly Fault[] = [
  {
    what: 'worker logs a fatal entry',
    provoke() {},
    again: ({ service }) => service.roles.worker.say('fatal', 'the store is gone'),
    undo() {},
    alerts: [
      critical(
        'SvcFatalLogEntry',
        { ...onFirst, svc_service: 'worker' },
        /logged fatal entries: \d+ in 10m\./,
      ),
    ],
  },
  {
    what: 'frontend writes half of a long line',
    provoke({ service }) {
      service.roles.frontend.rest(true);
      service.roles.frontend.write(`{"level":"info","msg":"${'x'.repeat(8192)}`);
    },
    undo({ service }) {
      service.roles.frontend.write('"}\n');
      service.roles.frontend.rest(false);
    },
    alerts: [
      warning(
        'SvcLogLag',
        { ...onFirst, svc_service: 'frontend' },
        /^At least 8(\.\d+)?kiB of the log of frontend/,
      ),
      warning(
        'SvcLogSilent',
        { ...onFirst, svc_service: 'frontend' },
        /^The agent read 0 bytes of the log of frontend/,
      ),
    ],
  },
  {
    what: 'the log of matching has holes of NUL bytes',
    provoke() {},
    again: ({ service }) => service.roles.matching.write(`${'\0'.repeat(512)}{"level":"info","msg":"on"}\n`),
    undo() {},
    alerts: [
      warning(
        'SvcLogBytesLost',
        { ...onFirst, svc_service: 'matching', reason: 'nul_hole' },
        /^[\d.]+(ki)?B of the log of matching .* \(nul_hole\) in 10m\./,
      ),
    ],
  },
  {
    what: 'worker logs that its own reporter loses series',
    provoke() {},
    again: ({ service }) => service.roles.worker.say('warn', 'error in prometheus reporter'),
    undo() {},
    alerts: [
      info(
        'SvcRoleReporterErrors',
        { ...onFirst, svc_service: 'worker' },
        /logged warnings that its own reporter lost series: \d+ in 15m\./,
      ),
    ],
  },
  {
    what: 'worker logs lines that are no JSON',
    provoke() {},
    again: ({ service }) => service.roles.worker.write('{"level": torn\n'),
    undo() {},
    alerts: [
      warning(
        'SvcAgentDropping',
        { ...onFirst, component: 'logs', reason: 'invalid_json' },
        /drops \d+\.\d{3} items\/s in logs, reason invalid_json\./,
      ),
    ],
  },
  {
    what: 'the frontend’s certificate has five days left',
    provoke: ({ service }) => service.roles.frontend.certify(service.certificates.short),
    undo: ({ service }) => service.roles.frontend.certify(service.certificates.long),
    alerts: [
      warning(
        'SvcCertificateExpiring',
        { cluster: 'dc1', probe: 'health/frontend' },
        /^The certificate that probe health\/frontend sees is valid for 4d 23h/,
      ),
    ],
  },
  {
    what: 'the file with the authorities of a health check no longer answers, as on a filesystem that hangs',
    provoke: ({ service: { dc2Authorities: file } }) => writeFileSync(`${file}.hangs`, ''),
    undo: ({ service: { dc2Authorities: file } }) => rmSync(`${file}.hangs`),
    alerts: [
      warning(
        'SvcProbeStale',
        { ...onOther, probe: 'health/frontend' },
        /^Probe health\/frontend on .* has had no result for three intervals \(skipped runs in 5m: \d+\)\./,
      ),
    ],
  },
  {
    what: 'a line is written into the configuration that is none',
    provoke: (stage) => takes(stage, { ...otherConfig(stage), servces: {} }, 'refused'),
    undo: (stage) => takes(stage, otherConfig(stage), 'taken'),
    alerts: [warning('SvcAgentReloadFailed', onOther, /svc_agent_config_last_reload_successful is 0\./)],
  },
  {
    what: 'a file stands where the state directory was',
    provoke({ agents }) {
      const { stateDirectory } = agents.other;
      renameSync(stateDirectory, `${stateDirectory}-gone`);
      writeFileSync(stateDirectory, '');
    },
    undo({ agents }) {
      const { stateDirectory } = agents.other;
      rmSync(stateDirectory);
      renameSync(`${stateDirectory}-gone`, stateDirectory);
    },
    alerts: [warning('SvcAgentStateDegraded', onOther, /svc_agent_state_degraded is 1\./)],
  },
  {
    what: 'the hosted platform answers with 503',
    provoke: ({ platform }) => platform.answer(503),
    undo: ({ platform }) => platform.answer(204),
    alerts: [
      // Each attempt waits longer than the one before.
      {
        ...warning(
          'SvcAgentReportFailing',
          { ...onOther, reason: 'server_error' },
          /^\d+\.\d{3} reports\/s .* fail, reason server_error\./,
        ),
        comesAndGoes: true,
      },
    ],
  },
];
