import Ledger

/// Claims that a stop left without an answer.
actor UnaskedClaims {
    /// What is to be handed back.
    private(set) var claims: [Claim] = []

    /// Adds one.
    func add(_ claim: Claim) {
        claims.append(claim)
    }
}
