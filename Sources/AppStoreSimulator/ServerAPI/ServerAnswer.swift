/// The App Store Server API: a call is admitted by its token, counted, and answered with its fault if it has one.
extension Simulator {
    func serve(_ request: SimulatorRequest, at environment: StoreEnvironment, path: [Substring]) -> SimulatorReply {
        guard let call = ServerCall(request, at: environment, path: path) else {
            return SimulatorReply(code: 404, body: Array("Not Found".utf8))
        }
        let token = ServerToken(authorization: request.authorization)
        let store = [self, neighbour].compactMap { $0 }.first { store in
            token.isGood(for: store.options.bundleID, by: store.serverKeys, at: store.clock.now)
        }
        return store?.answer(call) ?? SimulatorReply(code: 401, body: [])
    }

    private func answer(_ call: ServerCall) -> SimulatorReply {
        let now = clock.now
        if let moment = serverRates.refusal(of: call.endpoint, at: now) { return ServerError.tooMany(until: moment) }
        let fault = serverConditions.fault(ofCall: serverConditions.nextCall(), at: now)
        var reply: SimulatorReply
        do {
            reply = try answer(call, with: pen(with: fault))
        } catch let refused as ServerError {
            reply = refused.reply
        } catch {
            reply = ServerError(code: 5_000_000, message: "An unknown error occurred: \(error)").reply
        }
        reply.delaySeconds = Double(max(0, options.latencyMilliseconds)) / 1000
        return fault?.applied(toServer: reply, at: now) ?? reply
    }

    private func answer(_ call: ServerCall, with pen: SigningPen) throws -> SimulatorReply {
        switch call.endpoint {
        case .subscriptions: try statuses(call, pen)
        case .history: try history(call, pen)
        case .transaction: try transaction(call, pen)
        case .refunds: try refunds(call, pen)
        case .extend: try extend(call)
        case .massExtension: try extendAll(call)
        case .massStatus: try massStatus(call)
        case .consumption: try consume(call)
        case .accountToken: try setAccountToken(call)
        case .testNotification: try requestTest(call)
        case .testStatus: try testStatus(call)
        }
    }

    private func pen(with fault: Fault?) throws -> SigningPen {
        var pen = try pen()
        switch fault?.kind {
        case .forged: pen.altersSignatures = true
        case .foreign: pen.bundleID += ".other"
        case .status, .http, .hang, .truncate, .html, .slow, .drip, nil: break
        }
        return pen
    }
}

/// What the calls share.
extension Simulator {
    /// Returns the account that a transaction id names, as the Server API knows it now.
    func account(named id: String, _ call: ServerCall) throws(ServerError) -> Account {
        guard (1...19).contains(id.utf8.count), id.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .invalidTransactionID
        }
        guard let owner = AccountIDs.owner(of: id, at: call.environment), let account = serverAccount(owner.index),
            account.environment == call.environment
        else { throw .transactionNotFound }
        guard account.hasTransaction(id) || id == account.ids.appTransaction else { throw .transactionNotFound }
        guard !account.isDeleted else { throw .accountNotFound }
        return account
    }

    private func serverAccount(_ index: Int) -> Account? {
        let lag = serverLags.milliseconds(of: index)
        guard lag > 0 else { return world.account(index, at: now) }
        guard let account = world.account(index, at: now) else { return nil }
        return world.account(index, asOf: max(account.start, now - lag))
    }
}

extension SimulatorReply {
    /// Returns the answer of a call that succeeded.
    static func server(_ body: (inout JSONWriter) throws -> Void) rethrows -> SimulatorReply {
        var json = JSONWriter()
        try json.object(body)
        return SimulatorReply(headers: [("Content-Type", "application/json")], body: json.bytes)
    }
}

extension JSONWriter {
    /// Writes the app that an answer is about. Only the real store says its number.
    mutating func app(_ bundleID: String, at environment: StoreEnvironment) {
        text("bundleId", bundleID)
        switch environment {
        case .production: number("appAppleId", AnswerBody.appID)
        case .sandbox: break
        }
        text("environment", environment.rawValue)
    }
}

extension Fault {
    /// Returns the reply of the Server API with the fault applied.
    func applied(toServer reply: SimulatorReply, at now: StoreTime) -> SimulatorReply {
        switch kind {
        case .status:
            let code = Int64(status ?? 5_000_001)
            return ServerError(code: code, message: "An unknown error occurred. Please try again.").reply
        case .http where code == 429:
            return ServerError.tooMany(until: now + Int64((seconds ?? 1) * 1000))
        case .http, .hang, .truncate, .html, .slow, .drip, .forged, .foreign: return applied(to: reply)
        }
    }
}
