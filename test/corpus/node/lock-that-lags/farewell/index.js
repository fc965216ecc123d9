module.exports = 'farewell'
