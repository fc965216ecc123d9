/** The id of the element that holds the page's context, as JSON in `data-context`, and in which the page is drawn. */
export const ROOT_ID = 'dashboard'

/** The id of the element of a report's page that holds what was recorded, as JSON. */
export const RECORDED_ID = 'recorded'
