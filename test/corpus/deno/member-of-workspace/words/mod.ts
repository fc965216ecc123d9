export const greeting = 'welcome to the shop'
