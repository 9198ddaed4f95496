import type { Choice } from './model.ts';

/** A role, as the series of `metric` have it. */
export const roleOf = (metric: string): Choice => ({
  name: 'role',
  label: 'svc_service',
  title: 'Role',
  metric,
});

export const role = roleOf('svc_num_goroutines');
export const instance: Choice = {
  name: 'instance',
  label: 'instance',
  title: 'Instance',
  metric: 'svc_agent_build_info',
};

const labelled =
  (label: string, title: string) =>
  (metric: string): Choice => ({
    name: label,
    label,
    title,
    metric,
  });
export const operation = labelled('operation', 'Operation');
export const domain = labelled('domain', 'Domain');
export const tasklist = labelled('tasklist', 'Task list');
export const store = labelled('store', 'Store');
export const backup = labelled('backup', 'Backup');
