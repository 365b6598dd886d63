/// The bodies of notifications, written from the account as it was when the occasion arose.
extension Simulator {
    /// Returns the text of `signedPayload`; throws what signing throws.
    func signedPayload(of made: MadeNotification) throws -> String {
        let pen = try pen()
        let occasion = made.occasion
        let content = try content(of: occasion, pen)
        return try pen.text { json in
            json.object { json in
                json.text("notificationType", occasion.name.type)
                if let subtype = occasion.name.subtype { json.text("subtype", subtype) }
                json.text("notificationUUID", made.uuid)
                write(content, of: occasion, to: &json)
                json.text("version", "2.0")
                json.number("signedDate", occasion.at.milliseconds)
            }
        }
    }

    /// What `data` or `summary` holds.
    private enum Content {
        case summary(SupportBook.MassExtension)
        case data(Texts)
    }

    private struct Texts {
        var isAboutAccount = false
        var status: AppleStatus?
        var reason: RefundRequest.Reason?
        var transaction: String?
        var renewal: String?
    }

    private func content(of occasion: NotificationOccasion, _ pen: SigningPen) throws -> Content {
        if case .summary(let key) = occasion.source, let done = support.massExtension(key) { return .summary(done) }
        guard let account = occasion.account.flatMap({ world.account($0, asOf: occasion.at) }) else {
            return .data(Texts())
        }
        return .data(try texts(of: occasion, account, pen))
    }

    private func texts(of occasion: NotificationOccasion, _ account: Account, _ pen: SigningPen) throws -> Texts {
        var texts = Texts(isAboutAccount: true)
        guard let id = occasion.transactionID else { return texts }
        if let transaction = SignedTransaction.one(id, of: account, in: world) {
            texts.transaction = try pen.transaction(transaction, at: occasion.at)
        }
        if let place = account.period(id) {
            let life = account.lives[place.subscription]
            texts.status = life.status(at: occasion.at)
            if let renewal = SignedRenewal(life, of: account, in: world) {
                texts.renewal = try pen.renewal(renewal, at: occasion.at)
            }
        }
        if case .request(let number) = occasion.source, account.refundRequests.indices.contains(number) {
            texts.reason = account.refundRequests[number].reason
        }
        return texts
    }

    private func write(_ content: Content, of occasion: NotificationOccasion, to json: inout JSONWriter) {
        switch content {
        case .summary(let done): json.object("summary") { write(done, to: &$0) }
        case .data(let texts):
            json.object("data") { json in
                json.owner(options.bundleID, at: occasion.environment)
                if texts.isAboutAccount { json.text("bundleVersion", AnswerBody.appVersion) }
                if let status = texts.status { json.number("status", Int64(status.rawValue)) }
                if let reason = texts.reason { json.text("consumptionRequestReason", reason.rawValue) }
                if let transaction = texts.transaction { json.text("signedTransactionInfo", transaction) }
                if let renewal = texts.renewal { json.text("signedRenewalInfo", renewal) }
            }
        }
    }

    private func write(_ done: SupportBook.MassExtension, to json: inout JSONWriter) {
        json.text("requestIdentifier", done.requestID)
        json.owner(options.bundleID, at: done.environment)
        json.text("productId", done.productID)
        if !done.countries.isEmpty {
            json.array("storefrontCountryCodes") { json in
                for country in done.countries { json.text(country) }
            }
        }
        json.number("succeededCount", Int64(done.succeeded))
        json.number("failedCount", Int64(done.failed))
    }

    /// Returns the body that is posted; nil where the form has no such notification.
    func body(of made: MadeNotification, _ version: NotificationOptions.Version) throws -> [UInt8]? {
        switch version {
        case .first: return firstVersionBody(of: made)
        case .second:
            let text = try signedPayload(of: made)
            var json = JSONWriter(reserving: text.utf8.count + 32)
            json.object { $0.text("signedPayload", text) }
            return json.bytes
        }
    }
}

extension JSONWriter {
    fileprivate mutating func owner(_ bundleID: String, at environment: StoreEnvironment) {
        text("environment", environment.rawValue)
        switch environment {
        case .production: number("appAppleId", AnswerBody.appID)
        case .sandbox: break
        }
        text("bundleId", bundleID)
    }
}
