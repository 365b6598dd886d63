import Ledger

/// Claims that have no answer because the process stopped.
actor UnaskedClaims {
    /// The claims to hand back.
    private(set) var claims: [Claim] = []

    /// Adds a claim.
    func add(_ claim: Claim) {
        claims.append(claim)
    }
}
