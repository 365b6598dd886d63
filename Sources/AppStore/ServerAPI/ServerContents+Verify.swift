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
        for text in texts {
            if let fault = await fault(in: text, of: asked, by: verifier) { return fault }
        }
        return nil
    }

    /// Verifies the text that names the asked transaction, and that it is about the same app and environment.
    func faultInName(of request: ServerRequest, by verifier: SignedTextVerifier) async -> ServerVerdict? {
        guard let named else { return .noAnswer("Apple's answer cannot be read; ask again later.", code: nil) }
        let asked = AskedSubject(
            bundleID: request.key.bundleID, environment: environment, appleAppID: request.appleAppID)
        return await fault(in: named, of: asked, by: verifier)
    }

    private func fault(
        in text: Text, of asked: AskedSubject, by verifier: SignedTextVerifier
    ) async -> ServerVerdict? {
        do throws(SignedTextRefusal) {
            let claims = SubjectClaims(of: try await verifier.verify(text.compact).payload)
            return asked.difference(claims.bundleID, claims.environment).map { .otherSubject($0) }
        } catch {
            return .unverified("A text in Apple's answer cannot be verified (\(text.path)). \(error.sentence)")
        }
    }

    /// Whether the statuses or the history list the asked transaction under its own id.
    var listsAsked: Bool { subjectClaims.contains { $0.ids.contains(asked) } }

    /// Whether they list its purchase under another id: one of equal original id or line item.
    var listsNamed: Bool {
        guard let named = named?.payload.map(SubjectClaims.init) else { return false }
        return subjectClaims.contains { claims in
            claims.originalID != nil && claims.originalID == named.originalID
                || claims.lineItem != nil && claims.lineItem == named.lineItem
        }
    }

    private var subjectClaims: some Sequence<SubjectClaims> {
        answeredTexts.lazy.compactMap { $0.payload.map(SubjectClaims.init) }
    }
}

/// What a signed text says it is about.
struct SubjectClaims {
    let bundleID: String?
    let environment: String?
    let ids: Set<String>
    let originalID: String?
    let lineItem: String?

    init(of payload: [UInt8]) {
        guard let text = try? JSONReader.read(payload) else {
            (bundleID, environment, ids, originalID, lineItem) = (nil, nil, [], nil, nil)
            return
        }
        let members = text.members(JSONDocument.root)
        bundleID = members["bundleId"].flatMap(text.scalar)
        environment = members["environment"].flatMap(text.scalar)
        originalID = members["originalTransactionId"].flatMap(text.scalar)
        lineItem = members["webOrderLineItemId"].flatMap(text.scalar)
        ids = Set(
            ["transactionId", "originalTransactionId", "appTransactionId"].compactMap {
                members[$0].flatMap(text.scalar)
            })
    }
}
