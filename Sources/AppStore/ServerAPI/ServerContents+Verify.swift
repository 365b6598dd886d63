extension ServerContents {
    /// Verifies every text, and that all are about the app and environment that were asked; returns what is wrong.
    func fault(of request: ServerRequest, by verifier: SignedTextVerifier) async -> ServerVerdict? {
        let asked = AskedSubject(
            bundleID: request.key.bundleID, environment: environment, appleAppID: request.appleAppID)
        for subject in subjects {
            if let sentence = asked.difference(subject.bundleID, subject.environment, subject.appleAppID) {
                return .otherSubject(sentence)
            }
        }
        var isAskedIDThere = false
        for text in texts {
            let payload: [UInt8]
            do throws(SignedTextRefusal) {
                payload = try await verifier.verify(text.compact).payload
            } catch {
                return .unverified("A text in Apple's answer cannot be verified (\(text.path)). \(error.sentence)")
            }
            let claims = SubjectClaims(of: payload)
            if let sentence = asked.difference(claims.bundleID, claims.environment) {
                return .otherSubject(sentence)
            }
            isAskedIDThere = isAskedIDThere || claims.ids.contains(request.transactionID)
        }
        // A part of a long history need not hold the id.
        guard isAskedIDThere || !request.isFirstSight || goesOn else {
            return .otherSubject("Apple's answer does not hold the transaction that was asked about.")
        }
        return nil
    }
}

/// What a signed text says it is about.
struct SubjectClaims {
    let bundleID: String?
    let environment: String?
    let ids: Set<String>

    init(of payload: [UInt8]) {
        guard let text = try? JSONReader.read(payload) else {
            (bundleID, environment, ids) = (nil, nil, [])
            return
        }
        let members = text.members(JSONDocument.root)
        bundleID = members["bundleId"].flatMap(text.scalar)
        environment = members["environment"].flatMap(text.scalar)
        ids = Set(
            ["transactionId", "originalTransactionId", "appTransactionId"].compactMap {
                members[$0].flatMap(text.scalar)
            })
    }
}
