"""
Text
====

A kernel machine takes numbers and categories. A text becomes numbers first: by the frequencies of its words (TF-IDF),
or by the embedding of a language model. Columns of such numbers go beside the other columns of a table.

The texts of this page are real and at hand: paragraphs of scikit-learn's own documentation. The task is to tell from
which of six packages a paragraph is.
"""

import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from binfeat import KernelMachineClassifier

rows = {}
for package in ("cluster", "decomposition", "ensemble", "linear_model", "metrics", "preprocessing"):
    module = importlib.import_module(f"sklearn.{package}")
    for name in module.__all__:
        for text in re.split(r"\n\s*\n", inspect.getdoc(getattr(module, name)) or ""):
            if len(text.split()) >= 12 and ">>>" not in text:
                rows[text] = package, name  # a text that many pages share counts once
table = pd.DataFrame([(text, *where) for text, where in rows.items()], columns=["text", "package", "name"])
test = table["name"].isin(np.random.default_rng(0).permutation(table["name"].unique())[::4])
train, test = table[~test], table[test]
print(f"{len(train)} and {len(test)} paragraphs, of pages that differ")

# %%
# Frequencies of words
# --------------------
# TF-IDF has a column for each word. A kernel needs distances that mean something, so the columns are condensed to 100
# first (latent semantic analysis), and each row is scaled to length 1.

words = make_pipeline(
    TfidfVectorizer(stop_words="english", sublinear_tf=True), TruncatedSVD(100, random_state=0), Normalizer()
)
X_train, X_test = words.fit_transform(train["text"]), words.transform(test["text"])
machine = KernelMachineClassifier(random_state=0).fit(X_train, train["package"])
print(machine.summary())

# %%
# The error that the machine expects is that of paragraphs left out one by one, whose neighbours on the same page it
# knows; ``groups=train["name"]`` would hold out whole pages. A linear machine on all words is the usual yardstick, and
# hard to beat: text is nearly linear. Here the two are equal.

linear = make_pipeline(
    TfidfVectorizer(stop_words="english", sublinear_tf=True), LogisticRegression(C=10, max_iter=1000)
).fit(train["text"], train["package"])
found = {"kernel machine": machine.predict_proba(X_test), "logistic regression": linear.predict_proba(test["text"])}
for name, probabilities in found.items():
    right = accuracy_score(test["package"], machine.classes_[probabilities.argmax(axis=1)])
    print(f"{name:20} {right:.1%} right, log-loss {log_loss(test['package'], probabilities):.3f}")

# %%
# Text beside other columns
# -------------------------
# One data frame has both: the columns of the text, and whatever else the table has, categories included. Here it is the
# length of a paragraph, and whether it is a list of parameters.


def beside(X, part):
    frame = pd.DataFrame(X, columns=[f"topic {k}" for k in range(X.shape[1])], index=part.index)
    frame["length"] = part["text"].str.len()
    frame["kind"] = np.where(part["text"].str.contains(" : "), "parameter", "prose")
    return frame


both = KernelMachineClassifier(random_state=0).fit(beside(X_train, train), train["package"])
print(f"{both.score(beside(X_test, test), test['package']):.1%} right")

# %%
# Embeddings
# ----------
# A language model knows more about short texts, and texts with few words in common, than their words say. Its embedding
# is a row of some hundred numbers, which takes the place of ``words`` above (``pip install sentence-transformers``; it
# fetches the model):
#
# .. code-block:: python
#
#     from sentence_transformers import SentenceTransformer
#
#     model = SentenceTransformer("all-MiniLM-L6-v2")
#     X_train = model.encode(train["text"].tolist(), normalize_embeddings=True)  # (n_rows, 384)
#     machine = KernelMachineClassifier(random_state=0).fit(X_train, train["package"])
#
# Exact machines take fewer than 10,000 rows where there are more than 200 inputs; of more rows, and to save time,
# condense embeddings by ``PCA(100)``. Pictures and sounds are treated in the same way.

shares = pd.Series(both.feature_relevances_, both.feature_names_in_).sort_values()[-8:]
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh(shares.index, shares)
ax.set_xlabel("share in the kernel's exponent")
