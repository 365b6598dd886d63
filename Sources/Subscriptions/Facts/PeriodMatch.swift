/// Finds a previously known period among the current periods, in which it may have been merged with others.
struct PeriodMatch {
    private var byIdentifier: [WebOrderLineItemID: Int] = [:]
    private var byTransaction: [TransactionID: Int] = [:]

    init(_ periods: [Period]) {
        for (index, period) in periods.enumerated() {
            if let id = period.webOrderLineItemID { byIdentifier[id] = index }
            for id in period.transactionIDs where byTransaction[id] == nil { byTransaction[id] = index }
        }
    }

    /// Returns the index of the period; nil if it is not among them.
    func index(of period: Period) -> Int? {
        if let id = period.webOrderLineItemID { return byIdentifier[id] }
        return period.transactionIDs.compactMap { byTransaction[$0] }.min()
    }
}
