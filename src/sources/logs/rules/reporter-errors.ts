import type { LogRule } from '../options.ts';

/**
 * A role's own reporter says so in a warning when it drops series (inconsistent labels, a port in use), and the
 * role goes on blind: the one fault that its metrics cannot show.
 */
export const reporterErrors: LogRule = {
  name: 'svc_role_reporter_errors_total',
  type: 'counter',
  help: 'Warnings of the role that its own metrics reporter dropped series or could not report.',
  match: { msg: 'error in prometheus reporter' },
};
