import { commands } from './commands.ts';

export const helpText = `svc-agent: metrics, logs and health of a clustered workflow orchestration service

Usage: svc-agent COMMAND [OPTIONS]

Commands:
${commands.map(({ name, summary }) => `  ${name.padEnd(12)} ${summary}`).join('\n')}

Options of every command that reads a configuration:
  -c, --config FILE          default: ./agent.yaml, then /etc/svc-agent/agent.yaml
      --service-config FILE  the service's own configuration; may be repeated, later ones win
      --role ROLE            a role to watch; may be repeated
Options of every command:
      --json                 machine-readable output where a person gets a table
  -h, --help                 help of the command
      --version              version, alone

Exit status: 0 well; 1 failed at run time, or a check found a fault; 2 wrong usage or an invalid configuration.
`;
