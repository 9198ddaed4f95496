/** The package's version; the build puts it here, from source it is unknown. */
export const version: string = process.env.SVC_AGENT_VERSION ?? '0.0.0-source';
