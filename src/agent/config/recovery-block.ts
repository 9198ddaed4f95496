import * as z from 'zod';
import { placeholders } from '../../core/text-formats.ts';
import { rehearsalBlock } from '../../probes/rehearsal/block.ts';

/** The schema of a command: program and arguments, in which these placeholders stand for values. */
function command(...known: readonly string[]) {
  const { holds, fault } = placeholders(known);
  return z.array(z.string().min(1).refine(holds, fault)).min(1).optional();
}
const ofDatabase = ['store', 'database', 'address'];

/** The schema of `recovery`: the commands that `svc-agent recover` may run. The spec has no configuration for its procedures. */
export const recoveryBlock = () =>
  z
    .strictObject({
      rehearsal: rehearsalBlock(),
      allowExecute: z.boolean().default(false).describe('Lets svc-agent recover --execute run commands.'),
      client: command('address', 'cluster').describe(
        'The command-line client, such as [cli, --address, "{address}"]. {address} and {cluster} stand for the cluster that is queried. Default: what comes before `domain describe` in domains.describe.command.',
      ),
      commands: z
        .strictObject({
          stopServices: command(...ofDatabase).describe('Stops the roles of the service.'),
          startServices: command(...ofDatabase).describe('Starts the roles of the service.'),
          restore: command('file', 'until', ...ofDatabase).describe(
            'Restores a backup: {file} is the backup, {until} the time of --until or nothing; {store}, {database} and {address} are its target.',
          ),
          safetyCopy: command(...ofDatabase).describe(
            'Copies what is in the database before it is restored. Default: a second database (PostgreSQL), a dump beside the backup (MySQL), a snapshot by nodetool (wide-column store).',
          ),
          countWorkflows: command(...ofDatabase).describe(
            'Prints the number of workflows in the restored database. {store}, {database} and {address} stand for the same as in restore.',
          ),
          newestRow: command(...ofDatabase).describe(
            'Prints the time of the newest row in the restored database: RFC 3339, or seconds since the epoch.',
          ),
          standbyProbe: command('domain', 'cluster').describe(
            'Checks from the standby whether the active cluster answers: exit status 0 if it does, 1 if not. {cluster} stands for the active cluster.',
          ),
          repointTraffic: command('domain', 'cluster').describe(
            'Repoints DNS or the load balancer: {domain} is the domain that fails over, {cluster} its new active cluster.',
          ),
          deploy: command(...ofDatabase).describe('Deploys the service on a new cluster.'),
        })
        .prefault({})
        .describe('Your own commands for steps that the client of the service cannot do.'),
    })
    .prefault({})
    .describe('What svc-agent recover may run.');

export type RecoveryOptions = z.output<ReturnType<typeof recoveryBlock>>;
