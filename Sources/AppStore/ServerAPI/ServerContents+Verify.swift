extension ServerContents {
    /// Verifies every text, and that all are about the app and environment that were asked; returns what is wrong.
    func fault(of request: ServerRequest, by verifier: SignedTextVerifier) async -> ServerVerdict? {
        for subject in subjects {
            if let sentence = otherSubject(subject.bundleID, subject.environment, subject.appleAppID, request) {
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
            if let sentence = otherSubject(claims.bundleID, claims.environment, nil, request) {
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

    /// Returns a sentence where a subject is named and is another one.
    private func otherSubject(
        _ bundleID: String?, _ environment: String?, _ appleAppID: Int64?, _ request: ServerRequest
    ) -> String? {
        if let bundleID, bundleID != request.key.bundleID {
            return "The app asked about is \(request.key.bundleID), the answer is for another one."
        }
        if let environment, environment != self.environment.rawValue {
            return "The environment asked is \(self.environment.rawValue), the answer is from another one."
        }
        if let appleAppID, let expected = request.appleAppID, appleAppID != expected, self.environment == .production {
            return "Apple's number of the app is \(appleAppID), not \(expected); correct it with `perennial app set`."
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
