/// A claim of a signed text that this version does not know, a word in one that it does not know, or a value that is not of
/// the form that it reads. Such claims stay in the stored texts; dates alone decide access.
package struct UnreadClaim: Sendable, Hashable {
    /// The kind of signed text.
    package enum Kind: String, Sendable, CaseIterable {
        /// A transaction.
        case transaction
        /// Renewal information.
        case renewal
        /// A notification.
        case notification
    }

    /// The most that are named of one text.
    static let textMax = 20
    /// The longest name, in characters.
    static let nameMax = 100
    /// The longest word that is repeated, in characters.
    private static let wordMax = 40

    /// The kind of text and the place, such as `transaction.multiSeatInfo.newClaim`; a new word follows an equals sign.
    package let name: String
    /// Whether the claim is known and its value cannot be read.
    package let isUnreadable: Bool

    init(_ path: String, word: String? = nil, isUnreadable: Bool = false) {
        name = String((path + (word.map { "=" + String($0.prefix(Self.wordMax)) } ?? "")).prefix(Self.nameMax))
        self.isUnreadable = isUnreadable
    }

    /// Returns what is not read of a verified payload, each name once, in the order of the text.
    package static func all(in kind: Kind, payload: [UInt8]) -> [UnreadClaim] {
        guard let document = try? JSONReader.read(payload), document.nodes[JSONDocument.root].isObject else {
            return []
        }
        var found: [UnreadClaim] = []
        document.compare(JSONDocument.root, with: KnownClaims.of(kind), at: kind.rawValue, &found)
        if kind == .transaction { found += contradictions(PayloadFields(payload)) }
        var seen: Set<String> = []
        return Array(found.filter { seen.insert($0.name).inserted }.prefix(textMax))
    }

    /// Returns claims of a transaction that contradict each other.
    private static func contradictions(_ fields: PayloadFields?) -> [UnreadClaim] {
        guard let fields else { return [] }
        var wrong: [String] = []
        if let term = fields.object("commitmentInfo") {
            if let number = term.integer("billingPeriodNumber"), let total = term.integer("totalBillingPeriods"),
                number > total
            {
                wrong.append("commitmentInfo.billingPeriodNumber")
            }
            if let ends = term.instant("commitmentExpiresDate"), let paid = fields.instant("expiresDate"), ends < paid {
                wrong.append("commitmentInfo.commitmentExpiresDate")
            }
        }
        if let seats = fields.object("multiSeatInfo"), let quantity = fields.integer("quantity") {
            if let revoked = seats.integer("revokedSeatQuantity"), revoked > quantity {
                wrong.append("multiSeatInfo.revokedSeatQuantity")
            }
            let counts = seats.objects("priceTiers").map { $0.integer("quantity") }
            if !counts.isEmpty, counts.reduce(0, { $0 &+ ($1 ?? 0) }) != quantity {
                wrong.append("multiSeatInfo.priceTiers")
            }
        }
        return wrong.map { UnreadClaim("transaction.\($0)", isUnreadable: true) }
    }
}

extension JSONDocument {
    /// Appends what differs between an object and the forms of its claims.
    fileprivate func compare(
        _ object: Int, with forms: [String: KnownClaims.Form], at path: String, _ found: inout [UnreadClaim]
    ) {
        for key in keys(object) where !isAbsent(key + 1) {
            let name = unescaped(nodes[key])
            if let form = forms[name] {
                compare(key + 1, with: form, at: "\(path).\(name)", &found)
            } else {
                found.append(UnreadClaim("\(path).\(name)"))
            }
            // Another text than Apple's could have any number of members.
            guard found.count < UnreadClaim.textMax else { return }
        }
    }

    private func compare(
        _ value: Int, with form: KnownClaims.Form, at path: String, _ found: inout [UnreadClaim]
    ) {
        func require(_ isRead: Bool) {
            if !isRead { found.append(UnreadClaim(path, isUnreadable: true)) }
        }
        switch form {
        case .any: return
        case .text: require(scalar(value) != nil)
        case .flag: require(["true", "false", "0", "1"].contains(scalar(value)))
        case .instant: require(integer(value).flatMap(LenientInstant.believable) != nil)
        case .number(let range): require(integer(value).map { range.contains($0) } ?? false)
        case .word(let words):
            guard let word = scalar(value) else { return require(false) }
            if !words.contains(word) { found.append(UnreadClaim(path, word: word)) }
        case .object(let forms):
            guard nodes[value].isObject else { return require(false) }
            compare(value, with: forms, at: path, &found)
        case .list(let form):
            guard nodes[value].isArray else { return require(false) }
            for element in elements(value).prefix(UnreadClaim.textMax) {
                compare(element, with: form, at: path + "[]", &found)
            }
        }
    }

    /// Returns a whole number as ``PayloadFields`` reads it.
    private func integer(_ value: Int) -> Int64? { scalar(value).flatMap(PayloadFields.integer(in:)) }
}
