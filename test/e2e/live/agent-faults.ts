import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { otherConfig } from './configs.ts';
import { critical, type Fault, warning } from './fault.ts';
import type { Stage } from './stage.ts';

const onFirst = { cluster: 'dc1', instance: 'first' };
const onOther = { cluster: 'dc2', instance: 'other' };

async function takes(stage: Stage, config: object, outcome: 'taken' | 'refused'): Promise<void> {
  const became = await stage.agents.other.configure({ ...config });
  if (became !== outcome) throw new Error(`the configuration was ${became}`);
}

/** What befalls logs, certificates, probes and the agents themselves. */
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
        /logged \d+ fatal entries in 10m\.$/,
      ),
    ],
  },
  {
    what: 'frontend writes half of a long line',
    provoke: ({ service }) => service.roles.frontend.write(`{"level":"info","msg":"${'x'.repeat(8192)}`),
    undo: ({ service }) => service.roles.frontend.write('"}\n'),
    alerts: [
      warning(
        'SvcLogLag',
        { ...onFirst, svc_service: 'frontend' },
        /at least 8(\.\d+)?kiB have waited for 5m/,
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
        /matching beside .* [\d.]+(ki)?B were not read in 10m \(nul_hole\)\.$/,
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
        /drops \d+\.\d{3} items\/s \(logs, invalid_json\)\.$/,
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
        /^A certificate that probe health\/frontend meets expires in 4d 23h/,
      ),
    ],
  },
  {
    what: 'a line is written into the configuration that is none',
    provoke: (stage) => takes(stage, { ...otherConfig(stage), servces: {} }, 'refused'),
    undo: (stage) => takes(stage, otherConfig(stage), 'taken'),
    alerts: [warning('SvcAgentReloadFailed', onOther, /svc_agent_config_last_reload_successful is 0\.$/)],
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
    alerts: [warning('SvcAgentStateDegraded', onOther, /svc_agent_state_degraded is 1\.$/)],
  },
  {
    what: 'the hosted platform answers with 503',
    provoke: ({ platform }) => platform.answer(503),
    undo: ({ platform }) => platform.answer(204),
    alerts: [
      // Each attempt waits longer for the next.
      {
        ...warning(
          'SvcAgentReportFailing',
          { ...onOther, reason: 'server_error' },
          /\d+\.\d{3}\/s fail \(server_error\)\.$/,
        ),
        comesAndGoes: true,
      },
    ],
  },
];
