"""
Text
====

This page is for readers with text columns. A kernel model accepts numbers and categories, so convert each text to
numbers first: to word frequencies (TF-IDF), or to the embedding of a language model. You can combine the resulting
columns with other columns of the table.

The texts of this example are paragraphs of scikit-learn's documentation. The task is to predict which of six packages a
paragraph documents.
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
                rows[text] = package, name  # texts that occur on several pages count once
table = pd.DataFrame([(text, *where) for text, where in rows.items()], columns=["text", "package", "name"])
test = table["name"].isin(np.random.default_rng(0).permutation(table["name"].unique())[::4])
train, test = table[~test], table[test]
print(f"{len(train)} and {len(test)} paragraphs, from different pages")

# %%
# Word frequencies
# ----------------
# TF-IDF has one column per word. A kernel needs meaningful distances, so latent semantic analysis reduces the columns
# to 100, and each row is scaled to length 1.

words = make_pipeline(
    TfidfVectorizer(stop_words="english", sublinear_tf=True), TruncatedSVD(100, random_state=0), Normalizer()
)
X_train, X_test = words.fit_transform(train["text"]), words.transform(test["text"])
model = KernelMachineClassifier(random_state=0).fit(X_train, train["package"])
print(model.summary())

# %%
# The error in the summary is the leave-one-out error over paragraphs. Other paragraphs of the same page are training
# rows, so the error for new pages is higher; ``groups=train["name"]`` validates on whole pages. The usual baseline is a
# linear model on all words. It is hard to beat, because classes of texts are nearly linearly separable by their words.
# Here both models are about equally accurate.

linear = make_pipeline(
    TfidfVectorizer(stop_words="english", sublinear_tf=True), LogisticRegression(C=10, max_iter=1000)
).fit(train["text"], train["package"])
found = {"kernel model": model.predict_proba(X_test), "logistic regression": linear.predict_proba(test["text"])}
for name, probabilities in found.items():
    accuracy = accuracy_score(test["package"], model.classes_[probabilities.argmax(axis=1)])
    print(f"{name:20} {accuracy:.1%} correct, log-loss {log_loss(test['package'], probabilities):.3f}")

# %%
# Text and other columns
# ----------------------
# A data frame can contain the columns of the text and all other columns, including categories. Here the other columns
# are the length of the paragraph, and whether it describes a parameter.


def with_columns(X, part):
    frame = pd.DataFrame(X, columns=[f"topic {k}" for k in range(X.shape[1])], index=part.index)
    frame["length"] = part["text"].str.len()
    frame["kind"] = np.where(part["text"].str.contains(" : "), "parameter", "prose")
    return frame


both = KernelMachineClassifier(random_state=0).fit(with_columns(X_train, train), train["package"])
print(f"{both.score(with_columns(X_test, test), test['package']):.1%} correct")

# %%
# Embeddings
# ----------
# Embeddings of a language model are more accurate for short texts, and for texts with few words in common. An embedding
# has some hundred numbers per text, and replaces ``words`` above. Install ``sentence-transformers``, which downloads
# the language model:
#
# .. code-block:: python
#
#     from sentence_transformers import SentenceTransformer
#
#     encoder = SentenceTransformer("all-MiniLM-L6-v2")
#     X_train = encoder.encode(train["text"].tolist(), normalize_embeddings=True)  # (n_rows, 384)
#     model = KernelMachineClassifier(random_state=0).fit(X_train, train["package"])
#
# With more than 200 inputs, "auto" uses exact models for fewer than 10,000 rows only ("auto" is the default of
# ``features``). For more rows, or to save time, reduce the embeddings with ``PCA(100)``. Images and sounds are
# processed in the same way.

shares = pd.Series(both.feature_relevances_, both.feature_names_in_).sort_values()[-8:]
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.barh(shares.index, shares)
ax.set_xlabel("relevance")
