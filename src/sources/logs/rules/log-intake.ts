import type { Intake, Kind, RawTags, Shape } from '../../../core/model.ts';

/** The intake of a service's log metrics. */
export interface LogIntake extends Intake {
  /**
   * Claims a family of the durable store: its series come back from the state as they were. Returns their tags.
   * An intake without a state has no need of it.
   */
  declare?(kind: Kind, name: string, shape: Shape): readonly RawTags[];
}
