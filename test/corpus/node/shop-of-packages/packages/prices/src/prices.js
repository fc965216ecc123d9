const PRICES = { tea: 3 }
export const priceOf = (name) => PRICES[name]
