/** Path of the settings in a sandbox's tools directory. */
export const NPM_SETTINGS_FILE = 'etc/npmrc'

/** The variables that the settings refer to. Without them the settings are not used. */
export const NPM_VARIABLES = {
  /** A registry's address, with a slash at the end. */
  url: 'BERTH_PACKAGES_URL',
  /** Its host and port. */
  host: 'BERTH_PACKAGES_HOST',
  /** The credential for it. */
  token: 'BERTH_PACKAGES_TOKEN',
} as const

/**
 * Settings for npm that name a registry with its credential. Npm takes a credential only from a file: the variable
 * for it would need characters that a shell does not pass on. They are npm's global settings, so a project's and a
 * user's own take precedence.
 */
export const NPM_SETTINGS = `registry=\${${NPM_VARIABLES.url}}
//\${${NPM_VARIABLES.host}}/:_authToken=\${${NPM_VARIABLES.token}}
audit=false
fund=false
update-notifier=false
`
