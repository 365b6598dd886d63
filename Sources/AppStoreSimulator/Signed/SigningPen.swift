/// What the store signs about one app, and the deliberate mistakes in it.
struct SigningPen: Sendable {
    let authority: SigningAuthority
    /// The app that the texts are about; with a fault another one than asked.
    var bundleID: String
    /// Whether every signature is altered.
    var altersSignatures = false

    func transaction(_ transaction: SignedTransaction, at moment: StoreTime) throws -> String {
        try text { transaction.write(to: &$0, signedAt: moment, bundleID: bundleID) }
    }

    func renewal(_ renewal: SignedRenewal, at moment: StoreTime) throws -> String {
        try text { renewal.write(to: &$0, signedAt: moment, bundleID: bundleID) }
    }

    /// Signs the claims that `body` writes as one object.
    func text(_ body: (inout JSONWriter) -> Void) throws -> String {
        var json = JSONWriter()
        body(&json)
        let text = try authority.sign(json.bytes)
        guard altersSignatures, let dot = text.lastIndex(of: ".") else { return text }
        let (signed, signature) = (text[...dot], text[dot...].dropFirst())
        return signed + (signature.first == "A" ? "B" : "A") + signature.dropFirst()
    }
}

extension Simulator {
    /// Returns the pen for the store's own app.
    func pen() throws -> SigningPen { SigningPen(authority: try signingAuthority(), bundleID: options.bundleID) }
}
