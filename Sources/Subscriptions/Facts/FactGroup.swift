/// Optional facts that are listed once, in `each`. Every rule about all of them is a loop over that list.
///
/// The list is code and no dictionary, because the facts differ in type and each settlement merges all of them. A new
/// fact is a property, a name and a line of `each`.
package protocol FactGroup {
    /// The names of the facts; they are stored.
    associatedtype Name: Hashable

    /// Calls `step` for each fact, beside the same fact of another group, and returns a group of what `step` returns. A
    /// fact without a line here is lost or stays as it is, whatever the other group says.
    @discardableResult
    func each(beside other: Self, _ step: inout some FactStep<Name>) -> Self
}

/// What a loop does with one fact.
package protocol FactStep<Name> {
    associatedtype Name: Hashable

    /// Returns what takes the place of `fact`. A step that only looks returns nil, and its group is not used.
    mutating func fact<Value>(_ name: Name, _ fact: Fact<Value>?, _ other: Fact<Value>?) -> Fact<Value>?
}

extension FactGroup {
    /// Returns the newer of each fact.
    func updated(by other: Self) -> Self {
        var step = Newer<Name>()
        return each(beside: other, &step)
    }

    /// Returns only the facts that were stated by an instant.
    func only(statedBy instant: Instant) -> Self {
        var step = Stated<Name>(instant: instant)
        return each(beside: self, &step)
    }

    /// Returns the same facts, with another origin in the place of one.
    func replacing(_ origin: FactOrigin, by other: FactOrigin) -> Self {
        var step = OriginReplaced<Name>(origin: origin, other: other)
        return each(beside: self, &step)
    }

    /// The same facts with every path emptied, because rows change places in every answer.
    var withoutPaths: Self {
        var step = PathEmptied<Name>()
        return each(beside: self, &step)
    }

    /// Returns whether both state the same, regardless of source and instant. A flag denied equals one not mentioned.
    func statesSame(as other: Self) -> Bool {
        var step = Compared<Name>()
        each(beside: other, &step)
        return step.isSame
    }

    /// What each fact says, in the order of the list; nil for one that no source states.
    package var words: [String?] {
        var step = Words<Name>()
        each(beside: self, &step)
        return step.words
    }

    /// The instants of its facts.
    var factClocks: [Instant] {
        var step = Clocks<Name>()
        each(beside: self, &step)
        return step.clocks
    }

    /// Returns the origins of its facts, apart from one.
    func origins(apartFrom common: FactOrigin) -> [Name: FactOrigin] {
        var step = Origins<Name>(common: common)
        each(beside: self, &step)
        return step.origins
    }
}

private struct Newer<Name: Hashable>: FactStep {
    func fact<Value>(_: Name, _ fact: Fact<Value>?, _ other: Fact<Value>?) -> Fact<Value>? { newest(fact, other) }
}

private struct Stated<Name: Hashable>: FactStep {
    let instant: Instant

    func fact<Value>(_: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? {
        fact.flatMap { $0.asOf <= instant ? $0 : nil }
    }
}

private struct OriginReplaced<Name: Hashable>: FactStep {
    let origin: FactOrigin
    let other: FactOrigin

    func fact<Value>(_: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? {
        fact?.replacing(origin, by: other)
    }
}

private struct PathEmptied<Name: Hashable>: FactStep {
    func fact<Value>(_: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? { fact?.withoutPath }
}

private struct Compared<Name: Hashable>: FactStep {
    var isSame = true

    mutating func fact<Value>(_: Name, _ fact: Fact<Value>?, _ other: Fact<Value>?) -> Fact<Value>? {
        isSame = isSame && (fact?.value ?? Value.unstated) == (other?.value ?? Value.unstated)
        return nil
    }
}

private struct Words<Name: Hashable>: FactStep {
    var words: [String?] = []

    mutating func fact<Value>(_: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? {
        words.append(fact?.value.words)
        return nil
    }
}

private struct Clocks<Name: Hashable>: FactStep {
    var clocks: [Instant] = []

    mutating func fact<Value>(_: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? {
        if let fact { clocks.append(fact.asOf) }
        return nil
    }
}

private struct Origins<Name: Hashable>: FactStep {
    let common: FactOrigin
    var origins: [Name: FactOrigin] = [:]

    mutating func fact<Value>(_ name: Name, _ fact: Fact<Value>?, _: Fact<Value>?) -> Fact<Value>? {
        if let fact, fact.origin != common { origins[name] = fact.origin }
        return nil
    }
}
