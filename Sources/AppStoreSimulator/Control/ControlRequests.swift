/// The body of `POST /simulator/customers`: a named kind, or a custom script.
struct CustomerRequest: Decodable, Sendable {
    let script: CustomerScript
    let environment: StoreEnvironment

    enum CodingKeys: String, CodingKey {
        case kind, script, environment
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        if let written = try values.decodeIfPresent(CustomerScript.self, forKey: .script) {
            script = written
        } else {
            script = (try values.decodeIfPresent(ScriptKind.self, forKey: .kind) ?? .loyal).script
        }
        let name = try values.decodeIfPresent(String.self, forKey: .environment) ?? "Production"
        guard let environment = StoreEnvironment(named: name) else {
            throw DecodingError.dataCorruptedError(
                forKey: .environment, in: values, debugDescription: "environment is Production or Sandbox")
        }
        self.environment = environment
    }
}

/// The body of `POST /simulator/secret`.
struct SecretRequest: Decodable, Sendable {
    let secret: String
}

/// The body of `POST /simulator/certificate`.
struct CertificateRequest: Decodable, Sendable {
    let certificate: StoreCertificate
}

extension CustomerScript: Decodable {
    enum CodingKeys: String, CodingKey {
        case product, trial, offer, grace, lifetime, restored, charge, steps, drawn, alongside, quirks, subscribes
        case plan, seats, assigned
        case namesPlan = "names_plan"
        case beginsEmpty = "begins_empty"
        case seasonEveryMonths = "season_every_months"
        case buysSeveral = "buys_several"
        case familyShared = "family_shared"
        case pastPeriods = "past_periods"
        case coinsEveryMonths = "coins_every_months"
        case sendsRenewals = "sends_renewals"
        case secondCustomerAfterMonths = "second_customer_after_months"
        case accountToken = "account_token"
        case legacyReceipts = "legacy_receipts"
    }

    /// Reads a script. Absent fields default to those of a loyal monthly customer. At most 60 past periods.
    package init(from decoder: any Decoder) throws {
        self.init()
        let values = try decoder.container(keyedBy: CodingKeys.self)
        product = try values.decodeIfPresent(SubscriptionProduct.self, forKey: .product) ?? product
        startsWithTrial = try values.decodeIfPresent(Bool.self, forKey: .trial) ?? false
        startOffer = try values.decodeIfPresent(PeriodOffer.self, forKey: .offer) ?? startOffer
        subscribes = try values.decodeIfPresent(Bool.self, forKey: .subscribes) ?? true
        coinsEveryMonths = try values.decodeIfPresent(Double.self, forKey: .coinsEveryMonths)
        seasonEveryMonths = try values.decodeIfPresent(Double.self, forKey: .seasonEveryMonths)
        buysSeveral = try values.decodeIfPresent(Bool.self, forKey: .buysSeveral) ?? false
        beginsEmpty = try values.decodeIfPresent(Bool.self, forKey: .beginsEmpty) ?? false
        alongside = try values.decodeIfPresent([CustomerScript].self, forKey: .alongside) ?? []
        sendsRenewals = try values.decodeIfPresent(Bool.self, forKey: .sendsRenewals) ?? false
        secondCustomerAfterMonths = try values.decodeIfPresent(Double.self, forKey: .secondCustomerAfterMonths)
        hasAccountToken = try values.decodeIfPresent(Bool.self, forKey: .accountToken) ?? false
        sendsLegacyReceipts = try values.decodeIfPresent(Bool.self, forKey: .legacyReceipts) ?? false
        quirks = try values.decodeIfPresent(Set<ByteQuirk>.self, forKey: .quirks) ?? []
        hasGrace = try values.decodeIfPresent(Bool.self, forKey: .grace) ?? false
        isFamilyShared = try values.decodeIfPresent(Bool.self, forKey: .familyShared) ?? false
        isAssigned = try values.decodeIfPresent(Bool.self, forKey: .assigned) ?? false
        plan = try values.decodeIfPresent(BillingPlan.self, forKey: .plan) ?? .upfront
        seats = try values.decodeIfPresent(Int.self, forKey: .seats).map { min(Seats.countMax, max(1, $0)) }
        namesPlan = try values.decodeIfPresent(Bool.self, forKey: .namesPlan) ?? false
        ownsLifetime = try values.decodeIfPresent(Bool.self, forKey: .lifetime) ?? false
        hasRestored = try values.decodeIfPresent(Bool.self, forKey: .restored) ?? false
        chargeHabit = try values.decodeIfPresent(ChargeHabit.self, forKey: .charge) ?? .onTime
        pastPeriods = min(60, max(0, try values.decodeIfPresent(Int.self, forKey: .pastPeriods) ?? 0))
        steps = try values.decodeIfPresent([Step].self, forKey: .steps) ?? []
        isDrawn = try values.decodeIfPresent(Bool.self, forKey: .drawn) ?? false
    }
}

extension CustomerScript.Step: Codable {
    enum CodingKeys: String, CodingKey {
        case period, at
    }

    /// Reads `{"period":0,"at":0.5,"action":"refund"}`; the action's own fields stand in the same object.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            period: try values.decode(Int.self, forKey: .period), at: try values.decode(Double.self, forKey: .at),
            action: try CustomerAction(from: decoder))
    }

    /// Writes the same form.
    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(period, forKey: .period)
        try values.encode(at, forKey: .at)
        try action.encode(to: encoder)
    }
}
